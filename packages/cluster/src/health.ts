/**
 * How a driver and an agent notice that the other one is gone when nothing says so: a machine that lost its power, a network that was cut, a process that
 * was stopped.
 *
 * - Beside their link they hold a connection over which nothing is ever sent. The systems of both machines probe it (TCP keep-alive), whatever their
 *   processes do meanwhile: a driver that computes for minutes answers. When it breaks, what the link has is given up, and made again if that can be.
 * - The driver asks the agent for an answer every few seconds. An agent does nothing that takes long, so one that does not answer is gone.
 *
 * An agent cannot ask in turn: a driver that does not answer may be busy with what it is there for.
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Channel, deadline, type DeathCause, type Link } from "@rayling/core/cluster";

/** The way by which a driver opens that connection. */
export const heartWay = "heart";

/** Between two questions, and before what failed is tried again. */
const askMs = 5000;

/** However little patience there is with networks: an agent may have to wait for a CPU. */
const leastSilenceMs = 5000;

export interface HealthOptions {
  readonly link: Link;
  /** Resolves when the agent has answered. */
  readonly ask: () => Promise<unknown>;
  readonly dialHeart: () => Promise<Channel>;
  /** How long the agent may take to answer; 5,000 ms are always allowed. */
  readonly timeoutMs: number;
}

/** The driver's part, until the link is closed. */
export function watchAgent(options: HealthOptions): void {
  void holdHeart(options);
  void askAgain(options);
}

/** The agent's part: without that connection the link has none either. */
export function watchDriver(link: Link, heart: Channel): void {
  const last = hearts.get(link);
  hearts.set(link, heart);
  if (last === undefined) void link.closed.then((cause) => hearts.get(link)?.close(cause));
  else last.close(replaced);
  void heart.closed.then(() => {
    // The end of an earlier one is no news.
    if (hearts.get(link) === heart) link.cut();
  });
  // What is said on it would be kept for nobody.
  heart.onMessage(() => heart.close(talking));
}

/** Of each link the one that counts. */
const hearts: WeakMap<Link, Channel> = new WeakMap();

async function holdHeart({ link, dialHeart }: HealthOptions): Promise<void> {
  while (link.isOpen) {
    try {
      const heart = await dialHeart();
      await Promise.race([heart.closed, link.closed]);
      heart.close(over);
      link.cut();
    } catch {
      // The link finds out by itself whether the agent can be reached.
    }
    await pause(askMs, undefined, { ref: false });
  }
}

async function askAgain({ link, ask, ...options }: HealthOptions): Promise<void> {
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

const replaced: DeathCause = { kind: "unreachable", message: "another one took its place" };
const talking: DeathCause = { kind: "unreachable", message: "something was said on it" };
const over: DeathCause = { kind: "unreachable", message: "the connection to the agent ended" };
