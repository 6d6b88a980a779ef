/**
 * How both ends of a link notice that the way between their machines is gone when nothing says so: a machine that lost its power, a cable that was cut.
 *
 * Beside the link they hold a connection over which nothing is ever sent. The systems of both machines probe it (TCP keep-alive), whatever their threads do
 * meanwhile: a host that computes for minutes is there. The link's own connection is probed only while nothing is under way on it; what is sent into a
 * broken one is sent again for a quarter of an hour before anybody is told. When the heartbeat breaks, the link gives its connection up, and goes on over
 * another one if that can be made. A heartbeat that cannot be made says nothing: where too many wait for a host that computes, its system answers no one else.
 *
 * What lies between the machines may take connections itself, answer all probes, and pass nothing on. So the side that dialled asks for a word when it has heard
 * none for a while, and when none comes it makes another heartbeat, over which both sides prove who they are: if that can be made and the link is still silent, the
 * link's connection is dead. A host that computes answers neither; few heartbeats that it has not taken wait for it.
 *
 * One word may be said on it, by a process that ends: goodbye (Link.sayGoodbyeNow).
 */
import type { DeathCause } from "../../shared/errors.ts";
import { type Link, longestSilenceMs } from "./link.ts";
import type { Watch } from "./peer-probe.ts";
import type { SocketChannel } from "../socket.ts";

/** Before the first one, so that short links have none, and before what broke is made again. */
const pauseMs = { first: 1000, again: 5000, doubt: 500 };

export interface HeartbeatWay {
  /** Watches the other machine from now on, without a word to whom runs there, until that is ended. */
  readonly watch: (onLost: () => void) => Watch;
  /** Makes the heartbeat, however long that takes. Rejects when it cannot be made, or is not wanted any more. */
  readonly dial: (signal: AbortSignal) => Promise<SocketChannel>;
  /** Its first one is made at once, however short the link may be. */
  readonly isWantedAtOnce?: boolean;
  /** Whether that error says that the other side is gone or cannot be reached: it may only have no room for the heartbeat, or no time. */
  readonly isLoss: (error: unknown) => boolean;
}

/** How long nothing may be heard before a question, and before the answer, as a part of how long a cut may last; and at most. */
const silence = { part: 1 / 6, mostMs: 5000, leastMs: 250 };

/** The part of the side that dialled, until the link is closed. Does not keep the process alive. */
export async function holdHeartbeat(link: Link, way: HeartbeatWay): Promise<void> {
  const ended = new AbortController();
  let heartbeat: SocketChannel | undefined;
  let watch: Watch | undefined;
  const hold = (made: SocketChannel): void => {
    const last = heartbeat;
    heartbeat = made;
    link.heartbeat = made;
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
    // Until there is a heartbeat, also where a host that computes takes its time to answer.
    if (ms > 0 && watch?.isOver !== false) watch = way.watch(() => link.cut());
    if (ms > 0 && !(await passed(ms, ended.signal))) return;
    if (heartbeat === undefined) {
      try {
        hold(await way.dial(ended.signal));
      } catch (error) {
        if (way.isLoss(error)) link.cut();
        continue;
      }
    }
    watch?.end();
    await lastOf(() => heartbeat);
    heartbeat = undefined;
    link.heartbeat = undefined;
    link.cut();
  }
}

/** Resolves when it has ended, and no other took its place. */
async function lastOf(current: () => SocketChannel | undefined): Promise<void> {
  for (let last: SocketChannel | undefined; last !== current();) {
    last = current();
    await last?.closed;
  }
}

/** Finds the connection of the link dead over which nothing comes, until the link is closed. */
async function endSilence(
  link: Link,
  ended: AbortSignal,
  way: HeartbeatWay,
  hold: (heartbeat: SocketChannel) => void,
): Promise<void> {
  const quietMs = Math.max(
    silence.leastMs,
    Math.min(silence.mostMs, link.reconnectTimeoutMs * silence.part),
  );
  for (let waitMs = quietMs; await passed(waitMs, ended);) {
    const silentMs = performance.now() - link.heardAt;
    waitMs = quietMs;
    if (!link.isAttached) continue;
    if (silentMs < quietMs) {
      waitMs = quietMs - silentMs;
      continue;
    }
    const { cuts } = link;
    const askedAt = performance.now();
    // Not yet answered, and over the same connection.
    const isSilent = (): boolean => link.heardAt <= askedAt && link.cuts === cuts;
    link.ask();
    if (!(await passed(quietMs, ended))) return;
    while (isSilent() && !ended.aborted) {
      try {
        hold(await way.dial(ended));
        // What answered may be about to answer over the other one, too.
        if (!(await passed(Math.min(quietMs, graceMs), ended))) return;
        if (isSilent()) link.cut();
      } catch (error) {
        if (way.isLoss(error) && isSilent()) link.cut();
        if (!(await passed(Math.min(quietMs, pauseMs.doubt), ended))) return;
      }
    }
  }
}

/** For an answer that comes over the link's own connection to come before that is given up. */
const graceMs = 100;

/** The part of the side that was dialled, for a link without a heartbeat or with one: it gives up a connection over which nothing came for very long. */
export async function watchSilence(link: Link): Promise<void> {
  const ended = new AbortController();
  void link.closed.then(() => ended.abort());
  for (let waitMs = longestSilenceMs; await passed(waitMs, ended.signal);) {
    waitMs = link.heardAt + longestSilenceMs - performance.now();
    if (waitMs > 0) continue;
    link.cut();
    waitMs = longestSilenceMs;
  }
}

/** The part of the side that was dialled, where the dialler made a heartbeat. */
export function watchHeartbeat(link: Link, heartbeat: SocketChannel): void {
  const last = heartbeats.get(link);
  heartbeats.set(link, heartbeat);
  if (last === undefined) void link.closed.then(() => heartbeats.get(link)?.close(over));
  else last.close(replaced);
  link.heldBeside();
  void heartbeat.closed.then(() => {
    // The end of an earlier one is no news.
    if (heartbeats.get(link) === heartbeat) link.lostBeside();
  });
  heartbeat.onWord((word) => link.hearGoodbye(word));
  hearNothing(heartbeat);
}

/** What is said on it would be kept for nobody. */
function hearNothing(heartbeat: SocketChannel): void {
  heartbeat.onMessage(() => heartbeat.close(talking));
}

/** Of each link the one that counts. */
const heartbeats: WeakMap<Link, SocketChannel> = new WeakMap();

/** Resolves with whether it did, before `signal`. */
function passed(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const end = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", end);
      resolve(true);
    }, ms).unref();
    signal.addEventListener("abort", end, { once: true });
  });
}

const replaced: DeathCause = { kind: "unreachable", message: "another one took its place" };
const talking: DeathCause = { kind: "unreachable", message: "something was said on it" };
const over: DeathCause = { kind: "unreachable", message: "the connection ended" };
