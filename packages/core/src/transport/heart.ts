/**
 * How both ends of a link notice that the way between their machines is gone when nothing says so: a machine that lost its power, a cable that was cut.
 *
 * Beside the link they hold a connection over which nothing is ever sent. The systems of both machines probe it (TCP keep-alive), whatever their threads do
 * meanwhile: a host that computes for minutes is there. The link's own connection is probed only while nothing is under way on it; what is sent into a
 * broken one is sent again for a quarter of an hour before anybody is told. When the heart breaks, the link gives its connection up, and goes on over
 * another one if that can be made. A heart that cannot be made says nothing: where too many wait for a host that computes, its system answers no one else.
 *
 * One word may be said on it, by a process that ends: goodbye (Link.sayGoodbyeNow).
 */
import type { DeathCause } from "../shared/errors.ts";
import type { Link } from "./link.ts";
import type { Watch } from "./lost-way.ts";
import type { SocketChannel } from "./socket.ts";

/** Before the first one, so that short links have none, and before what broke is made again. */
const pauseMs = { first: 1000, again: 5000 };

export interface HeartWay {
  /** Watches the other machine from now on, without a word to whom runs there, until that is ended. */
  readonly watch: (onLost: () => void) => Watch;
  /** Makes the heart: rejects when it cannot be made. */
  readonly dial: () => Promise<SocketChannel>;
  /** Its first one is made at once, however short the link may be. */
  readonly isWantedAtOnce?: boolean;
  /** Whether that error says that the other side is gone or cannot be reached: it may only have no room for the heart, or no time. */
  readonly isLoss: (error: unknown) => boolean;
}

/** The part of the side that dialled, until the link is closed. Does not keep the process alive. */
export async function holdHeart(link: Link, way: HeartWay): Promise<void> {
  const ended = new AbortController();
  let heart: SocketChannel | undefined;
  let watch: Watch | undefined;
  void link.closed.then(() => {
    ended.abort();
    watch?.end();
    heart?.close(over);
  });
  for (
    let ms = way.isWantedAtOnce === true ? 0 : pauseMs.first;
    !ended.signal.aborted;
    ms = pauseMs.again
  ) {
    // Until there is a heart, also where a host that computes takes its time to answer.
    if (ms > 0 && watch?.isOver !== false) watch = way.watch(() => link.cut());
    if (ms > 0 && !(await passed(ms, ended.signal))) return;
    try {
      heart = await way.dial();
    } catch (error) {
      if (way.isLoss(error)) link.cut();
      continue;
    }
    watch?.end();
    if (!link.isOpen) heart.close(over);
    hearNothing(heart);
    link.heart = heart;
    await heart.closed;
    link.heart = undefined;
    link.cut();
  }
}

/** The part of the side that was dialled. */
export function watchHeart(link: Link, heart: SocketChannel): void {
  const last = hearts.get(link);
  hearts.set(link, heart);
  if (last === undefined) void link.closed.then(() => hearts.get(link)?.close(over));
  else last.close(replaced);
  void heart.closed.then(() => {
    // The end of an earlier one is no news.
    if (hearts.get(link) === heart) link.cut();
  });
  heart.onWord((word) => link.hearGoodbye(word));
  hearNothing(heart);
}

/** What is said on it would be kept for nobody. */
function hearNothing(heart: SocketChannel): void {
  heart.onMessage(() => heart.close(talking));
}

/** Of each link the one that counts. */
const hearts: WeakMap<Link, SocketChannel> = new WeakMap();

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
