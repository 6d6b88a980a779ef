/**
 * Says what this host does right now: its calls, and the stack of its thread.
 *
 * It is asked in two ways. The driver's control asks between two turns, where nothing is on the
 * stack. An inspector of another thread calls `look` in the middle of code that holds this one.
 * That code is below it on the stack, so nothing here may wait, or call code of the user's.
 */
import type { Caller } from "../../caller/caller.ts";
import { openWaits } from "../../caller/waits/open-waits.ts";
import { runningTask } from "../../caller/waits/task-scope.ts";
import type { CallLook, RuntimeLook } from "../../rpc/stacks.ts";
import { clockMs } from "../../shared/clock.ts";
import { namesOwnFile } from "../../shared/own-files.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import { stateOf } from "../state-view.ts";
import { Execution } from "./execution.ts";

/** Calls that are shown of one host. */
const mostCalls = 100;
const mostFrames = 100;

/** Where an inspector finds it: a thread has one host. */
export const lookSlot = "look";

/** Lets inspectors find this host. */
export function letLook(caller: Caller): void {
  const slot = threadSlot<{ look: () => string }>(lookSlot, () => ({ look: () => "" }));
  slot.look = () => JSON.stringify({ ...lookAt(caller, true), stack: stackBelow(slot.look) });
}

/** @param isHeld whether code of a call may be on the stack */
export function lookAt(caller: Caller, isHeld: boolean): RuntimeLook {
  const waits = openWaits(caller);
  const waiting = new Map(waits.map(({ taskId, what }) => [taskId, what]));
  const { sync, scope } = isHeld ? runningTask() : { sync: undefined, scope: undefined };
  const nowMs = clockMs();
  const calls: CallLook[] = [];
  const running = sync?.running;
  if (running !== undefined) {
    const { sinceMs, ...call } = running;
    calls.push({ ...call, state: "RUNNING", forMs: nowMs - sinceMs, isOnStack: true });
  }
  for (const { calls: incoming } of caller.sessions.open) {
    for (const call of incoming.tracked()) {
      if (!(call instanceof Execution) || call.taskId === running?.taskId) continue;
      calls.push({
        taskId: call.taskId,
        name: call.taskName,
        actorId: call.actor?.info.actorId,
        state: stateOf(call, waiting.get(call.taskId)),
        forMs: nowMs - call.sinceMs,
        isOnStack: sync === undefined && scope === call,
      });
    }
  }
  const sorted = calls.toSorted(
    (one, other) => rankOf(one) - rankOf(other) || other.forMs - one.forMs,
  );
  return {
    calls: sorted.slice(0, mostCalls),
    moreCalls: Math.max(0, sorted.length - mostCalls),
    waits,
    stack: [],
  };
}

function rankOf({ state, isOnStack }: CallLook): number {
  if (isOnStack) return 0;
  return state === "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY" ? 2 : 1;
}

/** Returns the frames below a function, without the runtime's own at their end. */
function stackBelow(look: () => string): readonly string[] {
  const { stackTraceLimit } = Error;
  const prepare = Object.getOwnPropertyDescriptor(Error, "prepareStackTrace");
  const holder: { stack?: string } = {};
  try {
    // A program may have frozen Error.
    Reflect.set(Error, "stackTraceLimit", mostFrames);
    // Another formatter may be code of the user's.
    Reflect.deleteProperty(Error, "prepareStackTrace");
    Error.captureStackTrace(holder, look);
    const [, ...lines] = (holder.stack ?? "").split("\n");
    return theirs(lines.map((line) => line.replace(/^\s*at /, "")));
  } finally {
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
    if (prepare !== undefined) Object.defineProperty(Error, "prepareStackTrace", prepare);
  }
}

/**
 * The first frame is the inspector's expression. All others are returned where the runtime itself
 * runs.
 */
function theirs([, ...frames]: readonly string[]): readonly string[] {
  const last = frames.findLastIndex(
    (frame) => !namesOwnFile(frame) && !frame.includes("node:") && !frame.includes("<anonymous>"),
  );
  return last < 0 ? frames : frames.slice(0, last + 1);
}
