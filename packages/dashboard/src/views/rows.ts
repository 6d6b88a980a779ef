/**
 * Rows of `ray.state`, filtered by a text and sorted by a column. All rows are looked through, and
 * as many are sent as a person can read.
 */
import type { DashboardSession, Listed } from "@rayling/core/dashboard";
import { maxLimit } from "@rayling/core/dashboard";
import { HttpRefusal } from "@rayling/core/http";
import type { View } from "./view.ts";

export const listed: readonly Listed[] = [
  "actors",
  "tasks",
  "objects",
  "placementGroups",
  "workers",
  "nodes",
];

/** Rows that are sent at most. */
const mostRows = 500;

/** A host that does not answer is named soon; the next look asks it again. */
export const askMs = 1000;

export type Row = Readonly<Record<string, unknown>>;

export interface RowsAnswer {
  readonly total: number;
  /** How many of them contain the text. */
  readonly found: number;
  /** Hosts that did not answer. */
  readonly missing: readonly string[];
  /** The first of those that were found. */
  readonly rows: readonly Row[];
}

/** Query: `text` that a row must contain, `sort` a column, `order=descending`. */
export function rowsOf(session: DashboardSession, what: Listed): View {
  return async (query): Promise<RowsAnswer> => {
    const { rows, total, missing } = await session.list(what, {
      limit: maxLimit,
      detail: true,
      timeoutMs: askMs,
    });
    const found = withText(rows.map(plainRow), query.get("text") ?? "");
    const sorted = sortedBy(found, query.get("sort"), query.get("order") === "descending");
    return { total, found: found.length, missing, rows: sorted.slice(0, mostRows) };
  };
}

export function plainRow(row: unknown): Row {
  return typeof row === "object" ? { ...row } : {};
}

function withText(rows: readonly Row[], text: string): readonly Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const all = Object.values(row).map(cellText).join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

/** Rows without a value in the column come last. Throws HttpRefusal. */
function sortedBy(
  rows: readonly Row[],
  column: string | null,
  isDescending: boolean,
): readonly Row[] {
  if (column === null || column === "") return rows;
  if (column.length > 100) throw new HttpRefusal(400, "invalid_request", "there is no such column");
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [one, other] = [a[column], b[column]];
    if (isMissing(one) || isMissing(other))
      return Number(isMissing(one)) - Number(isMissing(other));
    return sign * compared(one, other);
  });
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

const collator = new Intl.Collator("en", { numeric: true });

function compared(one: unknown, other: unknown): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return collator.compare(cellText(one), cellText(other));
}

function cellText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
