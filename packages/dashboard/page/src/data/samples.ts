/** Samples of reward logs as they travel, and pages of them as they are scrolled to. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./views.ts";

export interface LogName {
  readonly log: number;
  readonly name: string;
  readonly path: string;
}

export interface SampleRow {
  readonly index: number;
  readonly valid: boolean;
  readonly score: number | null;
  readonly latencyMs: number;
  readonly attempts: number;
  readonly cost: number | null;
  readonly tokens: number | null;
  readonly code: string | null;
  readonly parts: readonly { readonly name: string; readonly score: number | null }[];
  readonly response: string | null;
  /** Of the log beside it; null: that has no such sample. */
  readonly other?: { readonly score: number | null; readonly code: string | null } | null;
}

export interface SamplesAbout {
  readonly total: number;
  readonly found: number;
  readonly version: number;
  readonly malformed: number;
  readonly isPartial: boolean;
  readonly invalid: number;
  readonly meanScore: number | null;
  readonly cost: number;
  readonly lanes: readonly string[];
  readonly histogram: readonly {
    readonly from: number;
    readonly to: number;
    readonly count: number;
  }[];
  readonly compared?: {
    readonly pairs: number;
    readonly agreeing: number;
    readonly meanHere: number | null;
    readonly meanThere: number | null;
  };
}

interface SamplesAnswer extends SamplesAbout {
  readonly rows: readonly SampleRow[];
}

export interface SampleRecord {
  readonly index: number;
  readonly component: string | null;
  readonly valid: boolean;
  readonly score: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly errorClass: string | null;
  readonly at: string;
  readonly lane: string;
  readonly version: string;
  readonly group: string | null;
  readonly attempts: number;
  readonly waitedMs: number;
  readonly latencyMs: number;
  readonly cost: number | null;
  readonly cached: boolean;
  readonly answeredBy: string | null;
  readonly usage: Readonly<Record<string, number>> | null;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly prompt?: string | readonly { readonly role: string; readonly content: string }[] | null;
  readonly response?: string | readonly number[] | null;
  readonly groundTruth?: unknown;
  readonly textsDropped?: string;
}

export interface WholeSample {
  readonly record: SampleRecord;
  readonly parts: readonly SampleRecord[];
}

export interface SampleAnswer extends WholeSample {
  readonly other?: WholeSample;
}

/** Rows that are asked for together. */
const pageRows = 100;

/** How often a log that grows is looked at. */
const lookMs = 2000;

export interface Samples {
  readonly about: SamplesAbout | undefined;
  readonly problem: string | undefined;
  /** Undefined while it is on its way. */
  readonly rowAt: (at: number) => SampleRow | undefined;
  /** Asks for what is not there of these rows. */
  readonly show: (from: number, to: number) => void;
}

interface Pages {
  query: string;
  version: number | undefined;
  readonly rows: Map<number, readonly SampleRow[]>;
  readonly asked: Set<number>;
}

/** @param query of the view, without `from` and `count` */
export function useSamples(query: string): Samples {
  const pages = useRef<Pages>(noPages(query));
  const [answer, setAnswer] = useState<{ about?: SamplesAbout; problem?: string }>({});
  if (pages.current.query !== query) pages.current = noPages(query);

  const fetchPage = async (page: number): Promise<void> => {
    const { current } = pages;
    if (current.asked.has(page)) return;
    current.asked.add(page);
    try {
      const { rows, ...about } = await asked(query, page * pageRows, pageRows);
      if (pages.current !== current) return;
      current.version = about.version;
      current.rows.set(page, rows);
      setAnswer({ about });
    } catch (error) {
      if (pages.current === current) setAnswer({ problem: messageOf(error) });
    }
  };

  useEffect(() => {
    void fetchPage(0);
    const timer = setInterval(() => {
      const { current } = pages;
      if (document.hidden || current.version === undefined) return;
      void asked(query, 0, 0).then((about) => {
        if (pages.current !== current || about.version === current.version) return;
        pages.current = noPages(query);
        setAnswer({ about });
      }, ignore);
    }, lookMs);
    return () => clearInterval(timer);
  }, [query]);

  return {
    about: answer.about,
    problem: answer.problem,
    rowAt: (at) => pages.current.rows.get(Math.floor(at / pageRows))?.[at % pageRows],
    show: (from, to) => {
      for (let page = Math.floor(from / pageRows); page * pageRows <= to; page += 1) {
        void fetchPage(page);
      }
    },
  };
}

function noPages(query: string): Pages {
  return { query, version: undefined, rows: new Map(), asked: new Set() };
}

function asked(query: string, from: number, count: number): Promise<SamplesAnswer> {
  return ask<SamplesAnswer>("samples", `${query}&from=${from}&count=${count}`);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The next look reports what is wrong. */
function ignore(): void {}
