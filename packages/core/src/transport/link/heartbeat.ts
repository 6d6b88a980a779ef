/**
 * Detects, at both ends of a link, that the network between their machines is gone when no message
 * says so: a machine without power, a cable without contact.
 *
 * The heartbeat is a connection beside the link over which nothing is sent. The systems of both
 * machines probe it (TCP keep-alive), whatever their threads do: a host that computes for minutes
 * stays alive. The system probes the link's own connection only while nothing is under way on it;
 * data sent into a broken one is retransmitted for a quarter of an hour before an error appears.
 * When the heartbeat breaks, the link drops its connection and goes on over another one if it can;
 * that the other machine is lost is decided there (link-connection).
 * A heartbeat that cannot be made proves nothing: the backlog of a busy host may be full.
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
import type { DeathCause } from "../../shared/errors.ts";
import type { Link } from "./link.ts";
import { longestSilenceMs } from "./link-connection.ts";
import type { Watch } from "../connect/peer-probe.ts";
import type { SocketChannel } from "../socket/socket.ts";
import { timers } from "../../shared/machine/timers.ts";

/**
 * Pauses before the first heartbeat, so that short links have none, and before a broken one is made
 * again; in ms.
 */
const pauseMs = { first: 1000, again: 5000, doubt: 500 };

export interface HeartbeatWay {
  /** Watches the other machine, without contact to the process there, until the watch ends. */
  readonly watch: (onLost: () => void) => Watch;
  /**
   * Makes the heartbeat, without a time limit. Rejects when it cannot be made, or `signal` aborts.
   */
  readonly dial: (signal: AbortSignal) => Promise<SocketChannel>;
  /** Whether the first heartbeat is made at once, however short the link may be. */
  readonly isWantedAtOnce?: boolean;
  /**
   * Whether an error proves that the peer is gone or unreachable. Other errors may mean that it has
   * no room or no time for the heartbeat.
   */
  readonly isLoss: (error: unknown) => boolean;
}

/**
 * The silence before a question, and before its answer is overdue: a fraction of the longest cut,
 * within bounds in ms.
 */
const silence = { part: 1 / 6, mostMs: 5000, leastMs: 250 };

/** Runs the dialling side until the link is closed. Does not keep the process alive. */
export async function holdHeartbeat(link: Link, way: HeartbeatWay): Promise<void> {
  const ended = new AbortController();
  let heartbeat: SocketChannel | undefined;
  let watch: Watch | undefined;
  const hold = (made: SocketChannel): void => {
    const last = heartbeat;
    heartbeat = made;
    link.connection.heartbeat = made;
    hearNothing(made);
    last?.close(replaced);
    if (!link.isOpen) made.close(over);
  };
  void link.closed.then(() => {
    ended.abort();
    watch?.end();
    heartbeat?.close(over);
  });
  void endSilence(link, ended.signal, way, hold);
  for (
    let ms = way.isWantedAtOnce === true ? 0 : pauseMs.first;
    !ended.signal.aborted;
    ms = pauseMs.again
  ) {
    // The watch covers the time until there is a heartbeat, even while a busy host takes long to
    // answer.
    if (ms > 0 && watch?.isOver !== false) watch = way.watch(() => link.connection.cut());
    if (ms > 0 && !(await passed(ms, ended.signal))) return;
    if (heartbeat === undefined) {
      try {
        hold(await way.dial(ended.signal));
      } catch (error) {
        if (way.isLoss(error)) link.connection.cut();
        continue;
      }
    }
    watch?.end();
    await lastOf(() => heartbeat);
    heartbeat = undefined;
    link.connection.heartbeat = undefined;
    link.connection.cut();
  }
}

/** Resolves when the current heartbeat has ended and none replaced it. */
async function lastOf(current: () => SocketChannel | undefined): Promise<void> {
  for (let last: SocketChannel | undefined; last !== current();) {
    last = current();
    await last?.closed;
  }
}

/** Cuts a connection of the link that has gone silent, until the link is closed. */
async function endSilence(
  link: Link,
  ended: AbortSignal,
  way: HeartbeatWay,
  hold: (heartbeat: SocketChannel) => void,
): Promise<void> {
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
        hold(await way.dial(ended));
        // A peer that answered here may be about to answer over the link, too.
        if (!(await passed(Math.min(quietMs, graceMs), ended))) return;
        if (isSilent()) link.connection.cut();
      } catch (error) {
        if (way.isLoss(error) && isSilent()) link.connection.cut();
        if (!(await passed(Math.min(quietMs, pauseMs.doubt), ended))) return;
      }
    }
  }
}

/** Time for an answer over the link's own connection before that is dropped, in ms. */
const graceMs = 100;

/**
 * Runs the dialled side of a link, with or without a heartbeat: it drops a connection that is
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
    if (heartbeats.get(link) === heartbeat) link.connection.lostBeside();
  });
  heartbeat.onWord((word) => link.hearGoodbye(word));
  hearNothing(heartbeat);
}

/** Closes a heartbeat that receives a batch: nobody would read it. */
function hearNothing(heartbeat: SocketChannel): void {
  heartbeat.onMessage(() => heartbeat.close(talking));
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

const replaced: DeathCause = { kind: "unreachable", message: "another one took its place" };
const talking: DeathCause = { kind: "unreachable", message: "it received data" };
const over: DeathCause = { kind: "unreachable", message: "the connection ended" };
