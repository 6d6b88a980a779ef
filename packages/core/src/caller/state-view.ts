/**
 * One runtime's calls and objects, for the state API: looked up when somebody asks, nothing is kept
 * for it.
 */
import type { CallView, ObjectView, RuntimeView, TaskState } from "../rpc/state.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import type { Call, Stage } from "./calls/call.ts";
import type { Caller } from "./caller.ts";

/** More rows of one kind are not sent around. */
export const maxViewed = 100_000;

const stateOfStage: Readonly<Record<Stage, TaskState>> = {
  arguments: "PENDING_ARGS_AVAIL",
  actor: "PENDING_NODE_ASSIGNMENT",
  worker: "PENDING_NODE_ASSIGNMENT",
  credit: "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY",
  turn: "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY",
  sent: "SUBMITTED_TO_WORKER",
};

export function viewCalls(caller: Caller): readonly CallView[] {
  const views: CallView[] = [];
  for (const call of caller.calls.unanswered()) {
    if (views.length >= maxViewed) break;
    views.push(viewCall(call));
  }
  return views;
}

function viewCall(call: Call): CallView {
  return {
    taskId: call.entry.id,
    name: call.entry.label,
    state: stateOfStage[call.stage],
    actorId: call.owner.info?.actorId,
    parentTaskId: call.parent?.taskId,
    workerId: call.session?.peerId,
  };
}

/**
 * Objects of this runtime that others hold, and big ones in its memory. There is no list of the
 * others: dropping a ref frees its value.
 */
export function viewObjects(caller: Caller): readonly ObjectView[] {
  const views: Map<string, ObjectView> = new Map();
  for (const { entry, byteLength } of caller.objects.memory.inMemory()) {
    if (views.size >= maxViewed) break;
    views.set(entry.id, viewObject(entry, "PINNED_IN_MEMORY", [], byteLength));
  }
  for (const { entry, holders } of caller.objects.store.held()) {
    if (views.size >= maxViewed) break;
    if (caller.handles.isLife(entry)) continue;
    const known = views.get(entry.id);
    const size = known?.objectSize ?? sizeOf(entry);
    views.set(entry.id, viewObject(entry, "HELD_BY_OTHERS", [...holders], size));
  }
  return [...views.values()];
}

export function viewStored({ objects: { memory } }: Caller): RuntimeView["stored"] {
  const { bytesInMemory, bytesSpilled } = memory.stats;
  return { bytesInMemory, bytesSpilled };
}

function viewObject(
  entry: ObjectEntry,
  referenceType: ObjectView["referenceType"],
  holders: readonly string[],
  objectSize: number,
): ObjectView {
  const ok = entry.outcome?.ok !== false;
  return { objectId: entry.id, name: entry.label, objectSize, referenceType, ok, holders };
}

function sizeOf({ outcome }: ObjectEntry): number {
  const value = outcome?.ok === true ? outcome.value : undefined;
  if (value === undefined) return -1;
  return value.buffers.reduce((sum, buffer) => sum + buffer.byteLength, value.end - value.start);
}
