/**
 * Notices an agent that does not answer: the driver queries it every few seconds. An agent does
 * nothing that takes long, so a silent one is gone, even if its machine is not (the link's
 * heartbeat notices that, core's transport/link/heartbeat.ts).
 *
 * An agent cannot query the driver in turn: a silent driver may be busy with its own work.
 */
import { deadline, type Link, pause } from "@rayling/core/cluster";

/** The pause between two queries, in ms. */
const askMs = 5000;

/**
 * The shortest silence that counts, in ms, whatever the settings: an agent may have to wait for a
 * CPU.
 */
const leastSilenceMs = 5000;

/** The most time that the session waits for an agent when it leaves a machine, in ms. */
const leaveMs = 5000;

/** The pause between queries then, in ms. */
const leaveAskMs = 500;

export interface HealthOptions {
  readonly link: Link;
  /** Resolves when the agent has answered. */
  readonly ask: () => Promise<unknown>;
  /** How long the agent may take to answer, in ms; 5,000 ms are always allowed. */
  readonly timeoutMs: number;
}

/** Watches an agent until the link is closed. */
export async function watchAgent({ link, ask, ...options }: HealthOptions): Promise<void> {
  const timeoutMs = Math.max(options.timeoutMs, leastSilenceMs);
  await untilSilent(link, ask, { firstMs: askMs, everyMs: askMs, timeoutMs });
  if (!link.isOpen) return;
  const message = `the agent did not answer for ${timeoutMs / 1000} s`;
  link.close({ kind: "unreachable", message });
}

/** Resolves when waiting makes no sense: the agent does not answer, or the link is closed. */
export async function outOfReach({
  link,
  ask,
}: Pick<HealthOptions, "link" | "ask">): Promise<void> {
  await untilSilent(link, ask, { firstMs: 0, everyMs: leaveAskMs, timeoutMs: leaveMs });
}

interface Timing {
  readonly firstMs: number;
  readonly everyMs: number;
  readonly timeoutMs: number;
}

async function untilSilent(
  link: Link,
  ask: () => Promise<unknown>,
  { firstMs, everyMs, timeoutMs }: Timing,
): Promise<void> {
  // A race with link.closed would leave a reaction there on each query, for the life of the link.
  const ended = new AbortController();
  void link.closed.then(() => ended.abort());
  for (let pauseMs = firstMs; link.isOpen; pauseMs = everyMs) {
    if (pauseMs > 0) await pause(pauseMs, { ref: false });
    const answered = new AbortController();
    const isThere = (): void => answered.abort();
    ask().then(isThere, isThere);
    const signal = AbortSignal.any([answered.signal, ended.signal]);
    // A flaky network may cut off answers again and again: any data proves that the agent is there.
    for (let waitMs = timeoutMs; waitMs > 0; waitMs = timeoutMs - link.receipts.silentMs) {
      if (!(await silent(waitMs, signal))) break;
    }
    if (!signal.aborted) return;
  }
}

/**
 * Resolves with whether the time passed, not counting time in which this thread could not read an
 * answer.
 */
function silent(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const limit = deadline(ms, () => resolve(true));
    // The agent answered, or nobody waits any longer.
    signal.addEventListener("abort", () => {
      limit.end();
      resolve(false);
    });
  });
}
