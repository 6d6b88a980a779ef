/**
 * The commands for a running driver: their flags and texts. Each command loads when it runs.
 */
import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import type { Listed, Summarized } from "@rayling/core/control";
import { count, number } from "../flag-values.ts";
import type { ListFlags } from "./list-command.ts";
import type { LogsFlags } from "./logs-command.ts";
import type { MemoryFlags } from "./memory-command.ts";
import {
  type AnswerFlags,
  answerCommand,
  camelCase,
  driverCommand,
  type DriverFlags,
  filter,
} from "../session-flags.ts";
import type { StatusFlags } from "./status-command.ts";
import type { StopFlags } from "./stop-command.ts";
import type { TimelineFlags } from "./timeline-command.ts";

/** Ray's names of the lists. */
const listed = {
  actors: "actors",
  tasks: "tasks",
  objects: "objects",
  nodes: "nodes",
  workers: "workers",
  "placement-groups": "placementGroups",
} as const satisfies Readonly<Record<string, Listed>>;

/** The most rows; Ray's servers have this limit, too. */
const maxRows = 10_000;

/** Adds the commands, which find the driver by the same flags. */
export function addDriverCommands(program: Command): void {
  addStatus(program);
  addList(program);
  addGet(program);
  addSummary(program);
  addStack(program);
  addMemory(program);
  addLogs(program);
  addTimeline(program);
  addKill(program);
  addStop(program);
}

function addStatus(program: Command): void {
  answerCommand(program, "status")
    .summary("show the nodes of a running driver, its actors, and who waits for what")
    .description(
      "Shows a running driver at one moment: its nodes with what is used of their resources, its actors by state, and requests that wait for resources with the reason.",
    )
    .option(
      "--watch [seconds]",
      "show it again and again, until Ctrl-C (default: every 2 s)",
      seconds,
    )
    .action(async (flags: StatusFlags) => {
      const { showStatus } = await import("./status-command.ts");
      await showStatus(flags);
    });
}

function addGet(program: Command): void {
  answerCommand(program, "get")
    .summary("show all that a running driver knows of one actor, task, object, node or worker")
    .description(
      "Shows every column of what has that id, or, for actors, nodes and placement groups, that name. As json and yaml: rows by list, { actors: [...] }.",
    )
    .argument("<id>", "the id or name, as list shows it")
    .action(async (id: string, flags: AnswerFlags) => {
      const { showOne } = await import("./get-command.ts");
      await showOne(id, flags);
    });
}

function addKill(program: Command): void {
  driverCommand(program, "kill")
    .summary("end one actor of a running driver for good")
    .description("Kills an actor. It is not restarted, and its calls fail with ActorDiedError.")
    .argument("<actor>", "its id or its name, as `rayling list actors` shows it")
    .action(async (actor: string, flags: DriverFlags) => {
      const { killActor } = await import("./kill-command.ts");
      await killActor(actor, flags);
    });
}

/** A switch without a number has the default. */
function seconds(text: string): number {
  const value = number(text);
  if (value >= 0.1 && value <= 86_400) return value;
  throw new InvalidArgumentError("It must be a number of seconds, from 0.1 to 86400.");
}

/** Takes names as Ray writes them, too: class_name. */
function columnNames(text: string): readonly string[] {
  const names = text.split(",").map((name) => camelCase(name.trim()));
  if (!names.includes("")) return names;
  throw new InvalidArgumentError("It must be names of columns, with commas between them.");
}

function addList(program: Command): void {
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
    .action(async (what: keyof typeof listed, flags: ListFlags) => {
      const { showList } = await import("./list-command.ts");
      await showList(listed[what], { ...flags, limit: Math.min(flags.limit, maxRows) });
    });
}

function addSummary(program: Command): void {
  answerCommand(program, "summary")
    .summary("count actors, tasks or objects of a running driver by name and state")
    .description("Counts all there are, by name and state.")
    .addArgument(
      new Argument("<what>", "what to count").choices(["actors", "tasks", "objects"] as const),
    )
    .action(async (what: Summarized, flags: AnswerFlags) => {
      const { showSummary } = await import("./list-command.ts");
      await showSummary(what, flags);
    });
}

function addStack(program: Command): void {
  answerCommand(program, "stack")
    .summary("show where each actor and worker of a running driver is, with JavaScript stacks")
    .description(
      "Shows the calls that run in each worker, since when, what they wait for, and the JavaScript stack of code that holds a thread: in loops, regular expressions and Atomics.wait alike. The code goes on; it is interrupted for a moment.",
    )
    .argument("[which]", "a worker by its id, or an actor by its id, name or class (default: all)")
    .addHelpText("after", stackHelp)
    .action(async (which: string | undefined, flags: AnswerFlags) => {
      const { showStacks } = await import("./stack-command.ts");
      await showStacks(which, flags);
    });
}

function addMemory(program: Command): void {
  answerCommand(program, "memory")
    .summary("show what objects take of the memory of a running driver")
    .description(
      "Shows what each runtime keeps of big values (of 64 KiB and more), in memory and on disk, and the objects, the largest first.",
    )
    .option("--limit <count>", "objects at most, up to 10,000", count(1), 100)
    .action(async (flags: MemoryFlags) => {
      const { showMemory } = await import("./memory-command.ts");
      await showMemory({ ...flags, limit: Math.min(flags.limit, maxRows) });
    });
}

function addLogs(program: Command): void {
  driverCommand(program, "logs")
    .summary("show what actors and tasks of a running driver wrote")
    .description(
      "Shows the last lines that actors and tasks wrote (the driver keeps 10,000 lines, or 4 million characters), each with who wrote it.",
    )
    .option("--follow", "go on with what they write, until the driver ends")
    .option("--actor <actor>", "only lines of one actor or class: its id, its name or its class")
    .option("--task <name>", "only lines of tasks of that name")
    .option("--host <id>", "only lines of one host: its id, or the beginning of it")
    .option("--tail <count>", "the most lines to show of those that are kept", count(0))
    .action(async (flags: LogsFlags) => {
      const { showLogs } = await import("./logs-command.ts");
      await showLogs(flags);
    });
}

function addTimeline(program: Command): void {
  driverCommand(program, "timeline")
    .summary("write a trace of a running driver, for Perfetto or chrome://tracing")
    .description(
      "Writes the events of calls and tasks in Chrome's trace format. The driver records them with init({ taskEvents: true }).",
    )
    .option("--out <file>", "where to; - for stdout (default: timeline-<job id>.json)")
    .action(async (flags: TimelineFlags) => {
      const { writeTimeline } = await import("./timeline-command.ts");
      await writeTimeline(flags);
    });
}

function addStop(program: Command): void {
  driverCommand(program, "stop")
    .summary("end a running driver with all that it runs")
    .description(
      "Shuts the driver's runtime down, so that what is pending rejects and nothing is left of it, and ends its process as SIGTERM would.",
    )
    .option("--force", "kill the process if it has not ended by then")
    .option("--grace-period <ms>", "how long it may take", count(1), 30_000)
    .action(async (flags: StopFlags) => {
      const { stopDriver } = await import("./stop-command.ts");
      await stopDriver(flags);
    });
}

const stackHelp = `
Code that awaits something has no stack in JavaScript: its call is named, and what it waits for in get and wait.
Of a process (isolation "process") and of other machines there is a stack of no code; what holds it is named by what was sent there.

Examples:
  rayling stack
  rayling stack Judge --format json`;

const listHelp = `
Examples:
  rayling list actors --filter state=ALIVE --filter className!=Judge
  rayling list tasks --format json --limit 10000 --pid 4711`;
