/**
 * How a driver notices that an agent does not answer: it asks every few seconds. An agent does nothing that takes long, so one that is silent is gone, also
 * where its machine is not (which the link's heartbeat notices, core's transport/link/heartbeat.ts).
 *
 * An agent cannot ask in turn: a driver that does not answer may be busy with what it is there for.
 */
import { setTimeout as pause } from "node:timers/promises";
import { deadline, type Link } from "@rayling/core/cluster";

/** Between two questions. */
const askMs = 5000;

/** However little patience there is with networks: an agent may have to wait for a CPU. */
const leastSilenceMs = 5000;

/** What waits until it has left a machine waits no longer for an agent that does not answer. */
const leaveMs = 5000;

/** And asks again so much later. */
const leaveAskMs = 500;

export interface HealthOptions {
  readonly link: Link;
  /** Resolves when the agent has answered. */
  readonly ask: () => Promise<unknown>;
  /** How long the agent may take to answer; 5,000 ms are always allowed. */
  readonly timeoutMs: number;
}

/** Until the link is closed. */
export async function watchAgent({ link, ask, ...options }: HealthOptions): Promise<void> {
  const timeoutMs = Math.max(options.timeoutMs, leastSilenceMs);
  await untilSilent(link, ask, { firstMs: askMs, everyMs: askMs, timeoutMs });
  if (!link.isOpen) return;
  const message = `the agent did not answer for ${timeoutMs / 1000} s`;
  link.close({ kind: "unreachable", message });
}

/** Resolves when nobody can be waited for there: the agent does not answer, or the link is closed. */
export async function outOfReach({
  link,
  ask,
}: Pick<HealthOptions, "link" | "ask">): Promise<void> {
  await untilSilent(link, ask, { firstMs: 0, everyMs: leaveAskMs, timeoutMs: leaveMs });
}

interface Pace {
  readonly firstMs: number;
  readonly everyMs: number;
  readonly timeoutMs: number;
}

async function untilSilent(
  link: Link,
  ask: () => Promise<unknown>,
  { firstMs, everyMs, timeoutMs }: Pace,
): Promise<void> {
  // Not link.closed in each race: every question would leave its reaction there for as long as the link lives.
  const ended = new AbortController();
  void link.closed.then(() => ended.abort());
  for (let pauseMs = firstMs; link.isOpen; pauseMs = everyMs) {
    if (pauseMs > 0) await pause(pauseMs, undefined, { ref: false });
    const answered = new AbortController();
    const isThere = (): void => answered.abort();
    ask().then(isThere, isThere);
    const signal = AbortSignal.any([answered.signal, ended.signal]);
    // An answer may be cut off again and again on a way that comes and goes: what says anything is there.
    for (
      let waitMs = timeoutMs;
      waitMs > 0;
      waitMs = link.heardAt + timeoutMs - performance.now()
    ) {
      if (!(await silent(waitMs, signal))) break;
    }
    if (!signal.aborted) return;
  }
}

/** Whether so long passed, in which this thread could hear of an answer. */
function silent(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const limit = deadline(ms, () => resolve(true));
    // It was answered, or nobody waits for it any longer.
    signal.addEventListener("abort", () => {
      limit.end();
      resolve(false);
    });
  });
}
