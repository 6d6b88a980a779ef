/**
 * Why an object is not ready yet, in words: the reason its call waits, what its actor or worker is
 * doing, and so on for its arguments.
 *
 * Asks the directory, and through it hosts; a host that does not answer in time is said to be
 * silent, which is an answer, too.
 */
import type { ActorStatus, Directory } from "../../rpc/directory.ts";
import { clockMs } from "../../shared/clock.ts";
import { assertNever } from "../../shared/errors.ts";
import { ObjectEntry } from "../../store/object-entry.ts";
import { Call } from "../calls/call.ts";
import { StreamState } from "../stream.ts";
import type { Wait } from "./stuck-watch.ts";
import type { Waitable } from "./waitable.ts";

/** The parts of the waiting runtime that an explanation needs. */
export interface ExplainLink {
  readonly id: string;
  readonly directory: Directory;
}

/** Arguments of arguments are explained so far. */
const maxDepth = 3;

/** Objects of one wait, and waits of one time, that are explained; the others are counted. */
const maxExplained = 3;

/** One warning for all that were found at the same time. */
export async function describeStuck(link: ExplainLink, stuck: readonly Wait[]): Promise<string> {
  const parts = await Promise.all(
    stuck.slice(0, maxExplained).map((wait) => describeWait(link, wait)),
  );
  const more = stuck.length - parts.length;
  if (more > 0) parts.push(`${more} more calls of get or wait have waited as long.`);
  return parts.join("\n");
}

async function describeWait(link: ExplainLink, wait: Wait): Promise<string> {
  const waitables = wait.waitables.filter(
    (one) => !one.isReady || (wait.what === "get" && isAway(one)),
  );
  const seconds = ((clockMs() - wait.sinceMs) / 1000).toFixed(1);
  const who = wait.task === undefined ? "" : ` in ${wait.task.taskName}`;
  const count =
    waitables.length === wait.waitables.length
      ? `${waitables.length}`
      : `${waitables.length} of ${wait.waitables.length}`;
  const lines = await Promise.all(
    waitables.slice(0, maxExplained).map(async (one) => `  ${await describe(link, one)}`),
  );
  const more = waitables.length - lines.length;
  if (more > 0) lines.push(`  and ${more} more`);
  return [`${wait.what}${who} has waited ${seconds} s for ${count} not ready:`, ...lines].join(
    "\n",
  );
}

/** Whether it is ready, and its value is elsewhere: a get waits for that. */
function isAway(waitable: Waitable): boolean {
  return waitable instanceof ObjectEntry && waitable.outcome?.away !== undefined;
}

async function describe(link: ExplainLink, waitable: Waitable): Promise<string> {
  if (waitable instanceof StreamState) {
    const { completion } = waitable;
    return `the next item of ${nameOf(completion)}: ${await explain(link, completion, 0)}`;
  }
  if (!(waitable instanceof ObjectEntry)) return "something that is not an object";
  return `${nameOf(waitable)}: ${await explain(link, waitable, 0)}`;
}

/** Why the object is not ready. */
export async function explain(
  link: ExplainLink,
  entry: ObjectEntry,
  depth: number,
): Promise<string> {
  const { outcome } = entry;
  if (outcome?.away !== undefined) return `its value is not here yet: ${outcome.away.bringing}`;
  if (outcome !== undefined) return "it has become ready meanwhile";
  if (entry.owner !== link.id) {
    return `it belongs to ${entry.owner}, which was asked for it and has not answered: ${entry.label} is not ready there, or ${entry.owner} does not answer now`;
  }
  const call = entry.producer;
  if (!(call instanceof Call)) return `nothing has settled ${entry.label} yet`;
  switch (call.stage) {
    case "arguments":
      return explainArgument(link, call, depth);
    case "worker":
      return explainWorker(link, call);
    case "sent":
      return explainSent(link, call);
    default:
      return explainQueued(link, call, depth);
  }
}

async function explainArgument(link: ExplainLink, call: Call, depth: number): Promise<string> {
  const argument = call.args.dependencies.find(({ outcome }) => outcome === undefined);
  if (argument === undefined) return "an argument is being brought from where it is kept";
  const why = depth < maxDepth ? `: ${await explain(link, argument, depth + 1)}` : "";
  return `its argument ${nameOf(argument)} is not ready${why}`;
}

/** A task without a worker. */
async function explainWorker(link: ExplainLink, call: Call): Promise<string> {
  const demand = call.plan.worker?.demand;
  const place = `it is number ${placeOf(call) + 1} of the tasks that wait for a worker`;
  const reason = demand === undefined ? undefined : await link.directory.whyWaiting(demand);
  return reason === undefined ? place : `${place}; the first of them ${reason}`;
}

async function explainSent(link: ExplainLink, call: Call): Promise<string> {
  const hostId = call.session?.peerId ?? "";
  if (call.owner.info === undefined)
    return `it was sent to worker ${hostId}, which has not answered`;
  const ahead = aheadOf(call);
  const behind =
    ahead.length === 0 ? "" : `, behind ${ahead.length} calls of this caller (${firstOf(ahead)})`;
  return `it was sent to its actor${behind}; ${describeActor(await statusOf(link, call))}`;
}

async function statusOf(link: ExplainLink, call: Call): Promise<ActorStatus | undefined> {
  const { info } = call.owner;
  return info === undefined ? undefined : await link.directory.actorStatus(info.actorId);
}

/** A call that waits here, at the caller. */
async function explainQueued(link: ExplainLink, call: Call, depth: number): Promise<string> {
  const place = placeOf(call);
  const head = call.queue.peek();
  const position =
    place <= 0 || head === undefined
      ? "it is the first in its queue"
      : `it is number ${place + 1} in its queue, behind ${nameOf(head.entry)}`;
  if (call.stage === "credit") {
    return `${position}: so many calls are sent and not answered that no more are sent (credit); ${describeActor(await statusOf(link, call))}`;
  }
  if (call.stage === "turn" && head !== undefined && head !== call && depth < maxDepth) {
    return `${position}, which waits: ${await explain(link, head.entry, depth + 1)}`;
  }
  return `${position}; ${describeActor(await statusOf(link, call))}`;
}

/** A directory's answer about an actor, as one clause. */
export function describeActor(status: ActorStatus | undefined): string {
  if (status === undefined) return "the directory does not know its actor";
  const name = `actor ${status.className} (${status.actorId})`;
  switch (status.state) {
    case "DEPENDENCIES_UNREADY":
      return `${name} is not started: its constructor's arguments are not ready`;
    case "PENDING_CREATION":
    case "RESTARTING": {
      const what = status.state === "RESTARTING" ? "is being restarted" : "is being created";
      return status.reason === undefined
        ? `${name} ${what}`
        : `${name} ${what} and ${status.reason}`;
    }
    case "DEAD":
      return `${name} is dead: ${status.reason ?? "no cause is known"}`;
    case "ALIVE": {
      const { load, silence, hostId } = status;
      if (silence !== undefined) {
        return `${name} is alive on ${hostId}, which does not answer: ${silence}`;
      }
      // It began or ended there while its host was asked.
      if (load === undefined) return `${name} is alive on ${hostId}`;
      return `${name} is alive on ${hostId}, runs ${load.running} calls and has ${load.queued} queued`;
    }
    default:
      return assertNever(status.state);
  }
}

function nameOf(entry: ObjectEntry): string {
  return `${entry.label} (${entry.id})`;
}

/** How many stand before it in its queue. */
function placeOf(call: Call): number {
  let place = 0;
  for (const other of call.queue) {
    if (other === call) return place;
    if (!other.isSettled) place += 1;
  }
  return 0;
}

/** Calls of the same caller to the same actor that were sent before and are not answered. */
function aheadOf(call: Call): readonly Call[] {
  const ahead: Call[] = [];
  for (const other of call.session?.requests.all() ?? []) {
    if (other === call) break;
    if (other instanceof Call && other.owner === call.owner) ahead.push(other);
  }
  return ahead;
}

function firstOf(calls: readonly Call[]): string {
  const [first] = calls;
  return first === undefined ? "" : `the first is ${nameOf(first.entry)}`;
}
