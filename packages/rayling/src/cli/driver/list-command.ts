/**
 * `rayling list` and `rayling summary`: rows of a driver's state, and their counts.
 */
import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import type { Filter, Listed, StateAnswer, Summarized, Summary } from "@rayling/core/control";
import { nearestOf } from "@rayling/config-tree/nearest";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { count } from "../flag-values.ts";
import { withDriver } from "./drivers.ts";
import { print, tellMissing } from "../output/formats.ts";
import {
  answerCommand,
  answerLimitMs,
  type AnswerFlags,
  camelCase,
  filter,
  maxRows,
} from "../session-flags.ts";
import { columnsOf, tableLines } from "../output/table.ts";
import { forPeople } from "./row-text.ts";

export interface ListFlags extends AnswerFlags {
  /** Undefined: those that the driver chooses. */
  readonly columns?: readonly string[];
  readonly filter: readonly Filter[];
  readonly limit: number;
  readonly detail?: true;
}

/** Ray's names of the lists. */
const listed = {
  actors: "actors",
  tasks: "tasks",
  objects: "objects",
  nodes: "nodes",
  workers: "workers",
  "placement-groups": "placementGroups",
} as const satisfies Readonly<Record<string, Listed>>;

/** Adds `rayling list`. */
export function addListCommand(program: Command): void {
  answerCommand(program, "list")
    .summary("list actors, tasks, objects, nodes, workers or placement groups of a running driver")
    .description(
      "Lists what there is, by the columns and states of ray.state. As json and yaml: { rows, total, missing }, where missing names hosts that did not answer.",
    )
    .addArgument(new Argument("<what>", "what to list").choices(Object.keys(listed)))
    .addOption(
      new Option(
        "--filter <key=value>",
        "only rows with that value (key!=value: without it); may be repeated, and then all must hold",
      )
        .argParser(filter)
        .default([], "all rows"),
    )
    .option("--limit <count>", "rows at most, up to 10,000", count(1), 100)
    .option(
      "--columns <names>",
      "only these columns, in this order, by commas; those of --detail, too",
      columnNames,
    )
    .option("--detail", "with all columns; as yaml, unless --format says otherwise")
    .addHelpText("after", listHelp)
    .action((what: keyof typeof listed, flags: ListFlags) =>
      showList(listed[what], { ...flags, limit: Math.min(flags.limit, maxRows) }),
    );
}

/** Adds `rayling summary`. */
export function addSummaryCommand(program: Command): void {
  answerCommand(program, "summary")
    .summary("count actors, tasks or objects of a running driver by name and state")
    .description("Counts all there are, by name and state.")
    .addArgument(
      new Argument("<what>", "what to count").choices(["actors", "tasks", "objects"] as const),
    )
    .action(showSummary);
}

/** Takes names as Ray writes them, too: class_name. */
function columnNames(text: string): readonly string[] {
  const names = text.split(",").map((name) => camelCase(name.trim()));
  if (!names.includes("")) return names;
  throw new InvalidArgumentError("It must be names of columns, with commas between them.");
}

const listHelp = `
Examples:
  rayling list actors --filter state=ALIVE --filter className!=Judge
  rayling list tasks --format json --limit 10000 --pid 4711`;

export async function showList(what: Listed, flags: ListFlags): Promise<void> {
  const { filter: filters, limit, columns, timeout: timeoutMs } = flags;
  // A column that is named may be one of the detail.
  const detail = flags.detail === true || columns !== undefined;
  const options = { filters, limit, detail, timeoutMs };
  const { checkedQuery } = await import("@rayling/core/control");
  try {
    checkedQuery(what, "--filter", options);
  } catch (error) {
    throw new CliError(2, messageOf(error), { cause: error });
  }
  const all = await withDriver(flags, (driver) =>
    driver.ask("list", [what, options], answerLimitMs(timeoutMs)),
  );
  const answer = columns === undefined ? all : await withColumns(what, all, columns);
  await print(answer, flags.format ?? (flags.detail === true ? "yaml" : "table"), () =>
    listLines(answer, columns),
  );
  tellMissing(answer.missing);
}

/** Rejects with CliError 2 for a column that the rows do not have. */
async function withColumns(
  what: Listed,
  answer: StateAnswer,
  columns: readonly string[],
): Promise<StateAnswer> {
  const { filterKeys } = await import("@rayling/core/control");
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
