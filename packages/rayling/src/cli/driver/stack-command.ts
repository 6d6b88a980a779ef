/**
 * `rayling stack`: where each runtime of a driver is: the calls that run, since when, and the
 * JavaScript stack of threads that are held.
 */
import type { Command } from "commander";
import type { CallLook, StackAnswer, StackRow, WaitLook } from "@rayling/core/control";
import { CliError } from "../cli-error.ts";
import { heading, print } from "../output/formats.ts";
import { duration, grouped } from "../output/numbers.ts";
import { plain } from "../output/output.ts";
import { answerCommand, answerLimitMs, type AnswerFlags } from "../session-flags.ts";
import { withDriver } from "./drivers.ts";

/** Adds `rayling stack`. */
export function addStackCommand(program: Command): void {
  answerCommand(program, "stack")
    .summary("show where each actor and worker of a running driver is, with JavaScript stacks")
    .description(
      "Shows the calls that run in each worker, since when, what they wait for, and the JavaScript stack of code that holds a thread: in loops, regular expressions and Atomics.wait alike. The code goes on; it is interrupted for a moment.",
    )
    .argument("[which]", "a worker by its id, or an actor by its id, name or class (default: all)")
    .addHelpText("after", stackHelp)
    .action(showStacks);
}

const stackHelp = `
Code that awaits something has no stack in JavaScript: its call is named, and what it waits for in get and wait.
Of a process (isolation "process") and of other machines there is a stack of no code; what holds it is named by what was sent there.

Examples:
  rayling stack
  rayling stack Judge --format json`;

/** @param which the id of a worker, or id, name or class of an actor; undefined: all */
export async function showStacks(which: string | undefined, flags: AnswerFlags): Promise<void> {
  const { timeout: timeoutMs, format = "table" } = flags;
  const all = await withDriver(flags, (driver) =>
    driver.ask("stacks", [{ timeoutMs }], answerLimitMs(timeoutMs)),
  );
  const rows = which === undefined ? all.rows : all.rows.filter((row) => isMeant(row, which));
  if (rows.length === 0) {
    throw new CliError(1, `no worker or living actor has the id, name or class ${which ?? ""}`);
  }
  const answer: StackAnswer = { ...all, rows };
  await print(answer, format, () => rows.flatMap((row) => ["", ...rowLines(row)]).slice(1));
}

function isMeant({ workerId, actors }: StackRow, which: string): boolean {
  return (
    workerId === which ||
    actors.some(({ actorId, className, name }) => [actorId, className, name].includes(which))
  );
}

const states: Readonly<Record<StackRow["thread"], string>> = {
  FREE: "its thread is free",
  BUSY: "code holds its thread",
  SILENT: "does not answer",
};

function rowLines(row: StackRow): string[] {
  const { workerType, workerId, isolation, pid, thread, reason, sent, waits } = row;
  const what = workerType === "DRIVER" ? "driver" : `${isolation} ${plain(workerId)}`;
  const own = waits.filter(({ taskId }) => taskId === undefined);
  return [
    `${heading(what)}${pid === undefined ? "" : `, process ${pid}`}: ${states[thread]}`,
    ...actorLines(row),
    ...callLines(row),
    ...own.map((wait) => `  ${waitText(wait)} for ${duration(wait.forMs)}`),
    ...(reason === undefined ? [] : [`  no stack: ${plain(reason)}`]),
    ...(sent.length === 0
      ? []
      : [`  sent to it and not answered: ${namesOf(sent.map(({ name }) => name))}`]),
  ];
}

function actorLines({ actors }: StackRow): string[] {
  return actors.map(({ actorId, className, name }) => {
    const named = name === "" ? "" : ` "${plain(name)}"`;
    return `  actor ${plain(className)}${named} ${plain(actorId)}`;
  });
}

function callLines({ calls, moreCalls, waits, stack }: StackRow): string[] {
  const waiting = calls.filter((call) => isQueued(call));
  const running = calls.filter((call) => !isQueued(call));
  const hasHolder = running.some(({ isOnStack }) => isOnStack);
  const [first] = waiting;
  return [
    // A constructor, a module or a callback runs outside of calls.
    ...(hasHolder || stack.length === 0 ? [] : ["  outside of calls:", ...stackLines(stack)]),
    ...running.flatMap((call) => [
      runningText(call, waits),
      ...(call.isOnStack ? stackLines(stack) : []),
    ]),
    ...(first === undefined
      ? []
      : [
          `  in the mailbox: ${namesOf(waiting.map(({ name }) => name))}, the first for ${duration(first.forMs)}`,
        ]),
    ...(moreCalls === 0 ? [] : [`  and ${grouped(moreCalls)} more calls`]),
  ];
}

function isQueued({ state }: CallLook): boolean {
  return state === "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY";
}

function runningText(
  { taskId, name, forMs, isOnStack }: CallLook,
  waits: readonly WaitLook[],
): string {
  const wait = waits.find((one) => one.taskId === taskId);
  const how = isOnStack
    ? "holds the thread"
    : wait === undefined
      ? "awaits something"
      : waitText(wait);
  return `  ${plain(name)}, for ${duration(forMs)}: ${how}`;
}

function waitText({ what, waitsFor, count }: WaitLook): string {
  const more = count > waitsFor.length ? ` and ${grouped(count - waitsFor.length)} more` : "";
  return `waits in ${plain(what)} for ${waitsFor.map((name) => plain(name)).join(", ")}${more}`;
}

function stackLines(stack: readonly string[]): string[] {
  return stack.map((frame) => `      at ${plain(frame)}`);
}

/** Names with how often each is there: `3 x Judge.score, Judge.load`. */
function namesOf(names: readonly string[]): string {
  const counts = Map.groupBy(names, (name) => name);
  return [...counts]
    .map(([name, { length }]) => `${length === 1 ? "" : `${grouped(length)} x `}${plain(name)}`)
    .join(", ");
}
