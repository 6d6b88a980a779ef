/**
 * Detects, at both ends of a link, that the network between their machines is gone when no message
 * says so: a machine without power, a cable without contact.
 *
 * The heartbeat is a connection beside the link over which nothing is sent. The systems of both
 * machines probe it (TCP keep-alive), whatever their threads do: a host that computes for minutes
 * stays alive. The system probes the link's own connection only while nothing is under way on it;
 * data sent into a broken one is retransmitted for a quarter of an hour before an error appears.
 * So no data goes over a link before its heartbeat is there: the dialler makes it first, and the
 * listener takes no connection of a link without one. When the heartbeat breaks, the link drops its
 * connection and goes on over another one if it can; that the other machine is lost is decided
 * there (link-connection).
 *
 * A middlebox between the machines may accept connections, answer all probes, and forward nothing.
 * So the dialling side asks for a word after a silence. When none comes, it makes another
 * heartbeat, over which both sides prove their identity: if that works and the link is still
 * silent, the link's connection is dead. A busy host answers neither; only few heartbeats wait in
 * its backlog.
 *
 * An ending process may send one word over the heartbeat: goodbye (Link.sayGoodbyeNow).
 */
import { clockMs } from "../../shared/clock.ts";
import { type DialledHeartbeat, hearNothing, over, replaced } from "./dialled-heartbeat.ts";
import type { Link } from "./link.ts";
import { longestSilenceMs } from "./link-connection.ts";
import type { SocketChannel } from "../socket/socket.ts";
import { timers } from "../../shared/machine/timers.ts";

/**
 * The silence before a question, and before its answer is overdue: a fraction of the longest cut,
 * within bounds in ms.
 */
const silence = { part: 1 / 6, mostMs: 5000, leastMs: 250 };

/**
 * Runs the dialling side until the link is closed: cuts a connection of the link that has gone
 * silent. Does not keep the process alive.
 */
export async function endSilence(link: Link, heartbeat: DialledHeartbeat): Promise<void> {
  const ending = new AbortController();
  void link.closed.then(() => ending.abort());
  const ended = ending.signal;
  const quietMs = Math.max(
    silence.leastMs,
    Math.min(silence.mostMs, link.connection.reconnectTimeoutMs * silence.part),
  );
  for (let waitMs = quietMs; await passed(waitMs, ended);) {
    const { silentMs } = link.receipts;
    waitMs = quietMs;
    if (!link.connection.isAttached) continue;
    if (silentMs < quietMs) {
      waitMs = quietMs - silentMs;
      continue;
    }
    const { cuts } = link.connection;
    const askedAt = clockMs();
    // No answer has come yet, over an unchanged connection.
    const isSilent = (): boolean =>
      link.receipts.heardAt <= askedAt && link.connection.cuts === cuts;
    link.connection.ask();
    if (!(await passed(quietMs, ended))) return;
    while (isSilent() && !ended.aborted) {
      try {
        await heartbeat.replace(ended);
        // A peer that answered here may be about to answer over the link, too.
        if (!(await passed(Math.min(quietMs, graceMs), ended))) return;
        if (isSilent()) link.connection.cut();
      } catch (error) {
        if (heartbeat.isLoss(error) && isSilent()) {
          heartbeat.drop();
          link.connection.cut();
        }
        if (!(await passed(Math.min(quietMs, doubtMs), ended))) return;
      }
    }
  }
}

/** The longest pause before another heartbeat is tried, in ms. */
const doubtMs = 500;

/** Time for an answer over the link's own connection before that is dropped, in ms. */
const graceMs = 100;

/**
 * Runs the dialled side of a link, whatever its heartbeat says: it drops a connection that is
 * silent for very long.
 */
export async function watchSilence(link: Link): Promise<void> {
  const ended = new AbortController();
  void link.closed.then(() => ended.abort());
  for (let waitMs = longestSilenceMs; await passed(waitMs, ended.signal);) {
    waitMs = longestSilenceMs - link.receipts.silentMs;
    if (waitMs > 0) continue;
    link.connection.cut();
    waitMs = longestSilenceMs;
  }
}

/** Runs the dialled side of a heartbeat that the dialler made. */
export function watchHeartbeat(link: Link, heartbeat: SocketChannel): void {
  const last = heartbeats.get(link);
  heartbeats.set(link, heartbeat);
  if (last === undefined) void link.closed.then(() => heartbeats.get(link)?.close(over));
  else last.close(replaced);
  link.connection.heldBeside();
  void heartbeat.closed.then(() => {
    // The end of a replaced heartbeat says nothing.
    if (heartbeats.get(link) === heartbeat) link.connection.lostBeside(heartbeat.hasEnded);
  });
  heartbeat.onWord((word) => link.hearGoodbye(word));
  hearNothing(heartbeat);
}

/** The current heartbeat of each link. */
const heartbeats: WeakMap<Link, SocketChannel> = new WeakMap();

/** Resolves with true after `ms`, or with false when `signal` aborts first. */
function passed(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const end = (): void => {
      timers.clearTimeout(timer);
      resolve(false);
    };
    const timer = timers
      .setTimeout(() => {
        signal.removeEventListener("abort", end);
        resolve(true);
      }, ms)
      .unref();
    signal.addEventListener("abort", end, { once: true });
  });
}
