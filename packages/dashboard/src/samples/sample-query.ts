/** Finds samples of a log as a page asks: filtered, in an order, beside another log. */
import { HttpRefusal } from "@rayling/core/http";
import type { LogIndex, SampleRow } from "./log-index.ts";
import { histogramOf } from "./histogram.ts";
import type { Histogram } from "./histogram.ts";

const shows = ["all", "zeros", "invalid", "disagreements"] as const;
const columns = [
  "index",
  "score",
  "other",
  "latencyMs",
  "waitedMs",
  "attempts",
  "cost",
  "tokens",
] as const;

export interface SampleQuery {
  readonly show: (typeof shows)[number];
  readonly text: string;
  readonly lane: string;
  /** Scores from this one on; undefined: no limit, and samples without a score. */
  readonly least: number | undefined;
  readonly most: number | undefined;
  readonly sort: (typeof columns)[number];
  readonly isDescending: boolean;
}

/** Throws HttpRefusal for a value that makes no sense. */
export function sampleQuery(query: URLSearchParams): SampleQuery {
  return {
    show: oneOf(shows, "show", query.get("show") ?? "all"),
    text: query.get("text") ?? "",
    lane: query.get("lane") ?? "",
    least: numberIn(query, "least"),
    most: numberIn(query, "most"),
    sort: oneOf(columns, "sort", query.get("sort") ?? "index"),
    isDescending: query.get("order") === "descending",
  };
}

export interface Compared {
  /** Samples that both logs have. */
  readonly pairs: number;
  /** Pairs with equal scores, or without a score in both. */
  readonly agreeing: number;
  readonly meanHere: number | null;
  readonly meanThere: number | null;
}

/** Rows that were found, in their order. */
export interface Found {
  readonly rows: readonly SampleRow[];
  readonly histogram: Histogram;
  readonly invalid: number;
  readonly meanScore: number | null;
  readonly cost: number;
  readonly compared: Compared | undefined;
}

export function findSamples(log: LogIndex, other: LogIndex | undefined, query: SampleQuery): Found {
  const { text, lane, show, least, most } = query;
  const withText = log.texts.search(text, log.rows.length);
  const isWanted = wanted(show, other);
  const rows = log.rows.filter((row, at) => {
    if (withText !== undefined && withText[at] !== 1) return false;
    if (lane !== "" && row.lane !== lane) return false;
    if (least !== undefined && (row.score === null || row.score < least)) return false;
    if (most !== undefined && (row.score === null || row.score > most)) return false;
    return isWanted(row);
  });
  const scores = rows.flatMap(({ score }) => (score === null ? [] : [score]));
  return {
    rows: sorted(rows, other, query),
    histogram: histogramOf(scores),
    invalid: rows.length - scores.length,
    meanScore: meanOf(scores),
    cost: rows.reduce((sum, { cost }) => sum + (cost ?? 0), 0),
    compared: other && comparedTo(rows, other),
  };
}

function wanted(
  show: SampleQuery["show"],
  other: LogIndex | undefined,
): (row: SampleRow) => boolean {
  switch (show) {
    case "all":
      return () => true;
    case "zeros":
      return ({ score }) => score === 0;
    case "invalid":
      return ({ valid }) => !valid;
    default:
      return other === undefined
        ? hasDifferentParts
        : (row) => {
            const there = other.sameAs(row);
            return there !== undefined && there.score !== row.score;
          };
  }
}

/** Whether the rewards of one sample do not all say the same. */
function hasDifferentParts({ parts }: SampleRow): boolean {
  return parts.some(({ score }) => score !== parts[0]?.score);
}

/** Rows without a value come last. */
function sorted(
  rows: readonly SampleRow[],
  other: LogIndex | undefined,
  { sort, isDescending }: SampleQuery,
): readonly SampleRow[] {
  if (sort === "index" && !isDescending) return rows;
  const valueOf = (row: SampleRow): number | null =>
    sort === "other" ? (other?.sameAs(row)?.score ?? null) : row[sort];
  const sign = isDescending ? -1 : 1;
  const keyed = rows.map((row) => {
    const value = valueOf(row);
    return { row, key: value === null ? Infinity : sign * value };
  });
  return keyed.toSorted((a, b) => (a.key === b.key ? 0 : a.key - b.key)).map(({ row }) => row);
}

function comparedTo(rows: readonly SampleRow[], other: LogIndex): Compared {
  const pairs = rows.flatMap((row) => {
    const there = other.sameAs(row);
    return there === undefined ? [] : [[row.score, there.score] as const];
  });
  return {
    pairs: pairs.length,
    agreeing: pairs.filter(([here, there]) => here === there).length,
    meanHere: meanOf(pairs.flatMap(([here]) => (here === null ? [] : [here]))),
    meanThere: meanOf(pairs.flatMap(([, there]) => (there === null ? [] : [there]))),
  };
}

function meanOf(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function oneOf<Name extends string>(names: readonly Name[], key: string, value: string): Name {
  const name = names.find((one) => one === value);
  if (name !== undefined) return name;
  throw refused(`${key} must be one of ${names.join(", ")}`);
}

function numberIn(query: URLSearchParams, key: string): number | undefined {
  const text = query.get(key) ?? "";
  if (text === "") return undefined;
  const value = Number(text);
  if (Number.isFinite(value)) return value;
  throw refused(`${key} must be a number`);
}

export function refused(message: string): HttpRefusal {
  return new HttpRefusal(400, "invalid_request", message);
}
