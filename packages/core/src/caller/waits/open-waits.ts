/** The waits of a runtime that have not ended, for people: looked up when somebody asks. */
import type { WaitLook } from "../../rpc/stacks.ts";
import { clockMs } from "../../shared/clock.ts";
import { ObjectEntry } from "../../store/object-entry.ts";
import type { Caller } from "../caller.ts";
import { StreamState } from "../stream.ts";
import type { Waitable } from "./waitable.ts";

/** Waits, and names of one wait, that are shown. */
const mostWaits = 100;
const mostNames = 3;

export function openWaits({ stuck }: Caller): readonly WaitLook[] {
  const looks: WaitLook[] = [];
  const nowMs = clockMs();
  for (const { what, task, sinceMs, waitables } of stuck.waits()) {
    if (looks.length >= mostWaits) break;
    const open = waitables.filter(({ isReady }) => !isReady);
    const waitsFor = open.slice(0, mostNames).map(nameOf);
    const forMs = nowMs - sinceMs;
    looks.push({ what, taskId: task?.taskId, forMs, waitsFor, count: open.length });
  }
  return looks;
}

function nameOf(waitable: Waitable): string {
  if (waitable instanceof ObjectEntry) return waitable.label;
  return waitable instanceof StreamState ? waitable.completion.label : "something else";
}
