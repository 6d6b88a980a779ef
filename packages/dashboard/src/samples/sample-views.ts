/** Views of reward logs: which there are, samples of one, and one sample with all of it. */
import { HttpRefusal } from "@rayling/core/http";
import { JsonlError } from "@rayling/data-proto";
import { RewardLogError } from "@rayling/reward-loop/reward-log";
import type { LogIndex, PartScore, SampleRow, WholeSample } from "./log-index.ts";
import type { LogShelf } from "./log-shelf.ts";
import { findSamples, refused, sampleQuery } from "./sample-query.ts";
import type { Found } from "./sample-query.ts";
import { shownResponse } from "./shown-response.ts";
import type { Views } from "../views/view.ts";

/** A sample in the list. */
export interface ShownSample extends Omit<SampleRow, "sample" | "line" | "parts" | "longResponse"> {
  readonly parts: readonly Pick<PartScore, "name" | "score">[];
  /** The beginning of it. */
  readonly response: string | null;
  /** In the log beside it; undefined where that has no such sample. */
  readonly other?: Pick<SampleRow, "score" | "code"> | undefined;
}

/** All samples that were found, in figures. */
export interface SamplesAbout extends Omit<Found, "rows"> {
  readonly total: number;
  readonly found: number;
  /** Changes with every sample. */
  readonly version: number;
  /** How much of the logs is read, of 1; null: nobody knows, as they are packed. */
  readonly share: number | null;
  /** Lines that cannot be read. */
  readonly malformed: number;
  /** Whether some texts are not searched. */
  readonly isPartial: boolean;
  readonly lanes: readonly string[];
}

export interface SamplesAnswer extends SamplesAbout {
  readonly rows: readonly ShownSample[];
}

export interface SampleAnswer extends WholeSample {
  /** In the log beside it. */
  readonly other: WholeSample | undefined;
}

/** Rows of one answer at most. */
const mostRows = 500;

export function sampleViews(shelf: LogShelf): Views {
  const finder = new Finder();
  return {
    sampleLogs: async () => ({ logs: shelf.known }),
    samples: ofNow(async (query): Promise<SamplesAnswer> => {
      const log = await logIn(shelf, query, "log");
      const other = query.has("other") ? await logIn(shelf, query, "other") : undefined;
      const { rows, ...about } = finder.find(log, other, query);
      const from = wholeIn(query, "from", 0);
      const page = rows.slice(from, from + Math.min(mostRows, wholeIn(query, "count", 100)));
      return {
        ...about,
        total: log.rows.length,
        found: rows.length,
        version: log.version + (other?.version ?? 0),
        share: shareOf(log, other),
        malformed: log.malformed,
        isPartial: log.texts.isPartial,
        lanes: [...new Set(log.rows.map(({ lane }) => lane))].slice(0, 20),
        rows: await Promise.all(page.map((row) => shownRow(log, other, row))),
      };
    }),
    sample: ofNow(async (query): Promise<SampleAnswer> => {
      const log = await logIn(shelf, query, "log");
      const index = wholeIn(query, "index", -1);
      // A link to a sample may be opened before its line is read.
      if (log.rowOf(index) === undefined) await ofFile(log.refresh());
      const row = log.rowOf(index);
      if (row === undefined) throw refused("there is no sample of that index");
      const other = query.has("other") ? await logIn(shelf, query, "other") : undefined;
      const there = other?.sameAs(row);
      return {
        ...(await log.whole(row)),
        other: there === undefined ? undefined : await other?.whole(there),
      };
    }),
  };
}

type Answer<Data> = (query: URLSearchParams) => Promise<Data>;

/** A log that was written anew since it was looked at is read anew, and asked again. */
function ofNow<Data>(answer: Answer<Data>): Answer<Data> {
  return async (query) => {
    try {
      return await answer(query);
    } catch (error) {
      if (!(error instanceof HttpRefusal) || error.code !== "log_changed") throw error;
      return await answer(query);
    }
  };
}

function shareOf(log: LogIndex, other: LogIndex | undefined): number | null {
  const shares = [log.share, other === undefined ? 1 : other.share];
  return shares.includes(undefined) ? null : Math.min(...shares.map((share) => share ?? 1));
}

/** Remembers what was found last: a page that scrolls asks for more of it. */
class Finder {
  #last: { readonly key: string; readonly found: Found } | undefined;

  find(log: LogIndex, other: LogIndex | undefined, query: URLSearchParams): Found {
    const asked = sampleQuery(query);
    const key = JSON.stringify([log.path, log.version, other?.path, other?.version, asked]);
    if (this.#last?.key !== key) this.#last = { key, found: findSamples(log, other, asked) };
    return this.#last.found;
  }
}

async function shownRow(
  log: LogIndex,
  other: LogIndex | undefined,
  row: SampleRow,
): Promise<ShownSample> {
  const { sample: _, line: __, parts, longResponse, ...shown } = row;
  const there = other?.sameAs(row);
  return {
    ...shown,
    parts: parts.map(({ name, score }) => ({ name, score })),
    response: longResponse === undefined ? await responseOf(log, row) : longResponse,
    ...(other === undefined ? {} : { other: there && { score: there.score, code: there.code } }),
  };
}

async function responseOf(log: LogIndex, row: SampleRow): Promise<string | null> {
  const { record } = await log.whole({ ...row, parts: [] });
  return shownResponse(record.response);
}

/** Rejects with HttpRefusal, also where the file cannot be read any more. */
async function logIn(shelf: LogShelf, query: URLSearchParams, key: string): Promise<LogIndex> {
  const log = await ofFile(shelf.open(wholeIn(query, key, 0)));
  if (log === undefined) throw refused(`there is no log of the number in "${key}"`);
  return log;
}

async function ofFile<Value>(reading: Promise<Value>): Promise<Value> {
  try {
    return await reading;
  } catch (error) {
    const isOfFile = error instanceof JsonlError || error instanceof RewardLogError;
    throw isOfFile ? new HttpRefusal(422, "unreadable_log", error.message) : error;
  }
}

/** Throws HttpRefusal. */
function wholeIn(query: URLSearchParams, key: string, otherwise: number): number {
  const text = query.get(key) ?? "";
  if (text === "") return otherwise;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw refused(`${key} must be a whole number`);
}
