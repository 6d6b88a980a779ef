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

/** How often a log that grows is looked at, and one of which more is being read. */
const lookMs = 2000;
const readingMs = 500;

export interface Samples {
  readonly about: SamplesAbout | undefined;
  readonly problem: string | undefined;
  /** Undefined while it is on its way. */
  readonly rowAt: (at: number) => ShownSample | undefined;
  /** Asks for what is not there of these rows. */
  readonly show: (from: number, to: number) => void;
}

interface Pages {
  readonly query: string;
  /** Of the rows that are here; undefined: there are none yet. */
  about: SamplesAbout | undefined;
  /** Whether something was asked for in vain. */
  hasFailed: boolean;
  readonly rows: Map<number, readonly ShownSample[]>;
  readonly asked: Set<number>;
}

/** @param query of the view, without `from` and `count` */
export function useSamples(query: string): Samples {
  const pages = useRef<Pages>(noPages(query));
  const [answer, setAnswer] = useState<Pick<Samples, "about" | "problem">>(noAnswer);
  if (pages.current.query !== query) pages.current = noPages(query);

  /** Resolves with undefined when it fails, which it shows, or when others are asked for. */
  const look = async (current: Pages, from: number, count: number): Promise<Looked | undefined> => {
    try {
      const { rows, ...about } = await asked(query, from, count);
      if (pages.current !== current) return undefined;
      current.about ??= about;
      return { rows, about };
    } catch (error) {
      if (pages.current !== current) return undefined;
      current.hasFailed = true;
      setAnswer({ about: current.about, problem: messageOf(error) });
      return undefined;
    }
  };

  const fetchPage = async (page: number): Promise<void> => {
    const { current } = pages;
    if (current.asked.has(page)) return;
    current.asked.add(page);
    const looked = await look(current, page * pageRows, pageRows);
    if (looked === undefined) return;
    current.rows.set(page, looked.rows);
    setAnswer({ about: looked.about, problem: undefined });
  };

  const lookAgain = async (): Promise<void> => {
    const { current } = pages;
    const isFirst = current.about === undefined && !current.hasFailed;
    if (document.hidden || isFirst) return;
    const looked = await look(current, 0, 0);
    if (looked === undefined) return;
    if (!current.hasFailed && !isOther(looked.about, current.about)) return;
    // Rows that were there stay in sight until they are there anew.
    pages.current = { ...current, about: looked.about, hasFailed: false, asked: new Set() };
    setAnswer({ about: looked.about, problem: undefined });
  };

  useEffect(() => {
    void fetchPage(0);
  }, [query]);

  const everyMs = answer.about?.share === 1 ? lookMs : readingMs;
  useEffect(() => {
    const timer = setInterval(() => void lookAgain(), everyMs);
    return () => clearInterval(timer);
  }, [query, everyMs]);

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

interface Looked {
  readonly about: SamplesAbout;
  readonly rows: readonly ShownSample[];
}

const noAnswer = { about: undefined, problem: undefined };

function noPages(query: string): Pages {
  return { query, about: undefined, hasFailed: false, rows: new Map(), asked: new Set() };
}

function isOther(about: SamplesAbout, before: SamplesAbout | undefined): boolean {
  return about.version !== before?.version || about.share !== before.share;
}

function asked(query: string, from: number, count: number): Promise<SamplesAnswer> {
  return ask<SamplesAnswer>("samples", `${query}&from=${from}&count=${count}`);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
