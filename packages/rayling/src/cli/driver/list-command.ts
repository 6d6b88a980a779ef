/**
 * `rayling list` and `rayling summary`: rows of a driver's state, and their counts.
 */
import {
  checkedQuery,
  type Filter,
  filterKeys,
  type Listed,
  type StateAnswer,
  type Summarized,
  type Summary,
} from "@rayling/core/control";
import { nearestOf } from "@rayling/config-tree/nearest";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { withDriver } from "./drivers.ts";
import { print, tellMissing } from "../output/formats.ts";
import { answerLimitMs, type AnswerFlags } from "../session-flags.ts";
import { columnsOf, tableLines } from "../output/table.ts";
import { forPeople } from "./row-text.ts";

export interface ListFlags extends AnswerFlags {
  /** Undefined: those that the driver chooses. */
  readonly columns?: readonly string[];
  readonly filter: readonly Filter[];
  readonly limit: number;
  readonly detail?: true;
}

export async function showList(what: Listed, flags: ListFlags): Promise<void> {
  const { filter: filters, limit, columns, timeout: timeoutMs } = flags;
  // A column that is named may be one of the detail.
  const detail = flags.detail === true || columns !== undefined;
  const options = { filters, limit, detail, timeoutMs };
  try {
    checkedQuery(what, "--filter", options);
  } catch (error) {
    throw new CliError(2, messageOf(error), { cause: error });
  }
  const all = await withDriver(flags, (driver) =>
    driver.ask("list", [what, options], answerLimitMs(timeoutMs)),
  );
  const answer = columns === undefined ? all : withColumns(what, all, columns);
  await print(answer, flags.format ?? (flags.detail === true ? "yaml" : "table"), () =>
    listLines(answer, columns),
  );
  tellMissing(answer.missing);
}

/** Throws CliError 2 for a column that the rows do not have. */
function withColumns(what: Listed, answer: StateAnswer, columns: readonly string[]): StateAnswer {
  const all = answer.rows.map((row): object => Object(row));
  const known = [...new Set([...filterKeys[what], ...columnsOf(all)])];
  for (const column of columns) {
    if (known.includes(column)) continue;
    const alike = nearestOf(column, known);
    const meant = alike === undefined ? "" : `; is it ${alike}?`;
    throw new CliError(2, `--columns: ${column} is none of ${known.join(", ")}${meant}`);
  }
  const rows = all.map((row) =>
    Object.fromEntries(columns.map((column) => [column, Reflect.get(row, column)])),
  );
  return { ...answer, rows };
}

function listLines(
  { rows, total }: StateAnswer,
  columns: readonly string[] | undefined,
): readonly string[] {
  if (rows.length === 0) return ["none"];
  const shown = rows.filter((row) => typeof row === "object" && row !== null).map(forPeople);
  const lines = tableLines(shown, columns ?? columnsOf(shown));
  return rows.length === total ? lines : [...lines, `${rows.length} of ${total}; --limit for more`];
}

export async function showSummary(what: Summarized, flags: AnswerFlags): Promise<void> {
  const { timeout: timeoutMs } = flags;
  const summary = await withDriver(flags, (driver) =>
    driver.ask("summarize", [what, { timeoutMs }], answerLimitMs(timeoutMs)),
  );
  await print(summary, flags.format ?? "table", () => summaryLines(summary));
  tellMissing(summary.missing);
}

function summaryLines({ byName, total }: Summary): readonly string[] {
  const rows = Object.entries(byName).map(([name, states]) => ({ name, ...states }));
  return rows.length === 0 ? ["none"] : [...tableLines(rows, columnsOf(rows)), `${total} in all`];
}
