/** Samples of reward logs as they travel, and pages of them as they are scrolled to. */
import { useEffect, useRef, useState } from "preact/hooks";
import type {
  SampleAnswer,
  SamplesAbout,
  SamplesAnswer,
  ShownSample,
} from "../../../src/samples/sample-views.ts";
import { ask } from "./views.ts";

export type { RewardRecord } from "@rayling/reward-loop/reward-log";
export type { KnownLog } from "../../../src/samples/log-shelf.ts";
export type { WholeSample } from "../../../src/samples/log-index.ts";
export type { SampleAnswer, SamplesAbout, ShownSample };

/** Rows that are asked for together. */
const pageRows = 100;

/** How often a log that grows is looked at. */
const lookMs = 2000;

export interface Samples {
  readonly about: SamplesAbout | undefined;
  readonly problem: string | undefined;
  /** Undefined while it is on its way. */
  readonly rowAt: (at: number) => ShownSample | undefined;
  /** Asks for what is not there of these rows. */
  readonly show: (from: number, to: number) => void;
}

interface Pages {
  query: string;
  version: number | undefined;
  readonly rows: Map<number, readonly ShownSample[]>;
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
