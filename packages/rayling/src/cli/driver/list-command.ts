/**
 * `rayling list` and `rayling summary`: rows of a driver's state, and their counts.
 */
import {
  checkedQuery,
  type Filter,
  type Listed,
  type StateAnswer,
  type Summarized,
  type Summary,
} from "@rayling/core/control";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { withDriver } from "./drivers.ts";
import { print, tellMissing } from "../output/formats.ts";
import { answerLimitMs, type AnswerFlags } from "../session-flags.ts";
import { columnsOf, tableLines } from "../output/table.ts";

export interface ListFlags extends AnswerFlags {
  readonly filter: readonly Filter[];
  readonly limit: number;
  readonly detail?: true;
}

export async function showList(what: Listed, flags: ListFlags): Promise<void> {
  const { filter: filters, limit, detail = false, timeout: timeoutMs } = flags;
  const options = { filters, limit, detail, timeoutMs };
  try {
    checkedQuery(what, "--filter", options);
  } catch (error) {
    throw new CliError(2, messageOf(error), { cause: error });
  }
  const answer = await withDriver(flags, (driver) =>
    driver.ask("list", [what, options], answerLimitMs(timeoutMs)),
  );
  await print(answer, flags.format ?? (detail ? "yaml" : "table"), () => listLines(answer));
  tellMissing(answer.missing);
}

function listLines({ rows, total }: StateAnswer): readonly string[] {
  if (rows.length === 0) return ["none"];
  const shown = rows.filter((row) => typeof row === "object" && row !== null);
  const lines = tableLines(shown, columnsOf(shown));
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
