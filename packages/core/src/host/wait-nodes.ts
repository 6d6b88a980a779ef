/**
 * A host's part of the wait graph: its executions, which run or stand in the queue of an actor, and
 * their waits.
 *
 * An execution is stuck only if all of its waits are, and nothing else in this host could wake its
 * code.
 */
import { warn } from "../shared/text/warning.ts";
import type { Caller } from "../caller/caller.ts";
import type { Wait } from "../caller/waits/stuck-watch.ts";
import type { TaskScope } from "../caller/waits/task-scope.ts";
import { WaitNodes } from "../caller/waits/wait-nodes.ts";
import { freeNode, nodeId, partsOfNode, type WaitNode } from "../rpc/wait-graph.ts";
import { DeadlockError } from "../shared/errors.ts";
import { Execution } from "./calls/execution.ts";
import type { Idleness } from "./calls/idleness.ts";
import { Instance } from "./calls/actor/instance.ts";
import { pause } from "../shared/machine/timers.ts";

/**
 * Work that this host does itself because of a message, such as starting the next call, is over
 * after this time, in ms.
 */
const settleMs = 2;

export function taskNodeId(caller: Caller, { taskId }: TaskScope): string {
  return nodeId("task", caller.id, taskId);
}

/** Returns the nodes with these ids, and the local nodes that they depend on. */
export async function waitNodesOf(
  caller: Caller,
  idleness: Idleness,
  ids: readonly string[],
): Promise<readonly WaitNode[]> {
  await pause(settleMs, { ref: false });
  const isIdle = idleness.isIdle && !caller.waiting.isAsking;
  const known = new WaitNodes(caller);
  const executions = executionsOf(caller);
  for (const id of ids) {
    const { kind, key } = partsOfNode(id);
    if (kind !== "task") known.find(id);
    else addTask(id, executions.get(key));
  }
  return known.all;

  function addTask(id: string, execution: Execution | undefined): void {
    if (execution?.isWanted !== true) return void known.add(freeNode(id));
    const name = `${execution.taskName} (${execution.taskId})`;
    const free = { ...freeNode(id), name };
    if (execution.isQueued) return void known.add(queued(id, name, execution) ?? free);
    const waits = waitsOf(caller, execution);
    // The caller, or the creator of the actor, may abort the wait through a signal.
    const { actor } = execution;
    const hasSignals =
      execution.hasSignals || (actor instanceof Instance && actor.signals.isConnected);
    const mayWake = !isIdle || hasSignals;
    const isOnlyThat = waits.length > 0 && waits.length === caller.waiting.countIn(execution);
    if (mayWake || !isOnlyThat) return void known.add(free);
    const of = waits.map((wait) => known.wait(wait).id);
    known.add({ id, name, of, least: of.length });
  }

  function queued(id: string, name: string, execution: Execution): WaitNode | undefined {
    const instance = execution.actor;
    if (!(instance instanceof Instance)) return undefined;
    const { limit, isFull } = instance.groups.placesFor(execution);
    const running = [...executions.values()].filter(
      (other) => !other.isQueued && sharesPlaces(other, execution),
    );
    // A call that is already answered may still hold a place.
    if (!isFull || instance.isExiting || running.length < limit) return undefined;
    const { className, actorId } = instance.info;
    const times = limit === 1 ? "1 call" : `${limit} calls`;
    const says = `waits for a place in actor ${className} (${actorId}), which runs ${times} at a time:`;
    const of = running.map((other) => taskNodeId(caller, other));
    return { id, name, says, of, least: of.length };
  }
}

/** Ends that wait, or warns of it once; it may have ended meanwhile. */
export function foundCycle(
  caller: Caller,
  id: string,
  steps: readonly string[],
  rejects: boolean,
): void {
  const { key } = partsOfNode(id);
  for (const wait of caller.stuck.waits()) {
    if (`${wait.id}` !== key || wait.task === undefined) continue;
    const error = new DeadlockError(wait.what, wait.task.taskId, wait.task.taskName, steps);
    // The stack of the detection says nothing; the waiter adds its own place.
    error.stack = `${error.name}: ${error.message}`;
    if (rejects) return wait.stop?.(error);
    if (!wait.isReported) warn(error.message);
    wait.isReported = true;
    return;
  }
}

/** Returns the executions by their ids. */
function executionsOf(caller: Caller): ReadonlyMap<string, Execution> {
  const found = new Map<string, Execution>();
  for (const session of caller.sessions.open) {
    for (const running of session.calls.tracked()) {
      if (running instanceof Execution) found.set(running.taskId, running);
    }
  }
  return found;
}

function waitsOf(caller: Caller, execution: Execution): readonly Wait[] {
  return [...caller.stuck.waits()].filter(({ task }) => task === execution);
}

/** Whether both calls belong to one actor and to one concurrency group. */
function sharesPlaces(one: Execution, other: Execution): boolean {
  return one.actor === other.actor && one.route.shape?.group === other.route.shape?.group;
}
