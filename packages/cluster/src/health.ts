/**
 * How a driver notices that an agent does not answer: it asks every few seconds. An agent does nothing that takes long, so one that is silent is gone, also
 * where its machine is not (which the link's heart notices, core's transport/heart.ts).
 *
 * An agent cannot ask in turn: a driver that does not answer may be busy with what it is there for.
 */
import { setTimeout as pause } from "node:timers/promises";
import { deadline, type Link } from "@rayling/core/cluster";

/** Between two questions. */
const askMs = 5000;

/** However little patience there is with networks: an agent may have to wait for a CPU. */
const leastSilenceMs = 5000;

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
  // Not link.closed in each race: every question would leave its reaction there for as long as the link lives.
  const ended = new AbortController();
  void link.closed.then(() => ended.abort());
  while (link.isOpen) {
    await pause(askMs, undefined, { ref: false });
    const answered = new AbortController();
    const isThere = (): void => answered.abort();
    ask().then(isThere, isThere);
    const isSilent = await silent(timeoutMs, AbortSignal.any([answered.signal, ended.signal]));
    if (!isSilent) continue;
    const message = `the agent did not answer for ${timeoutMs / 1000} s`;
    return link.close({ kind: "unreachable", message });
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
