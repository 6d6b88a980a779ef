/**
 * The first of several connections that is made: an attempt that begins while the network is away
 * may hang, even when the network is back.
 */
import { clockMs } from "../../shared/clock.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { cutOff } from "../address.ts";
import { type Deadline, deadline } from "../deadline.ts";
import type { Connected } from "./connect.ts";
import { handshakeMs } from "./handshake.ts";

/** The delay between the starts of two attempts, in ms. */
const hedgeMs = 800;

/** The state of attempts to reach a peer that may be busy. */
export interface Busy {
  readonly onReached: () => void;
  /** Times that a reached peer has to answer before another connection is tried, in ms. */
  readonly times: Iterator<number, never>;
}

/** Makes one connection; `isReached` is called when the peer's machine has accepted it. */
type Attempt = (signal: AbortSignal, isReached: () => void) => Promise<Connected>;

export interface Attempts {
  readonly attempt: Attempt;
  /** Whether the peer's name is being looked up. */
  readonly isNaming: () => boolean;
}

/**
 * Returns the first connection that is made. Rejects with the last attempt's error when none is
 * under way, and when an attempt has used all of the time. For a peer that may be busy, an attempt
 * that reaches it replaces the earlier ones and has no time limit.
 */
export function firstOf(
  attempts: Attempts,
  busy: Busy | undefined,
  over: AbortSignal,
): Promise<Connected> {
  return new FirstConnection(attempts, busy, over).made;
}

class FirstConnection {
  readonly made: Promise<Connected>;
  readonly #resolve: (connected: Connected) => void;
  readonly #reject: (error: Error) => void;
  readonly #attempts: Attempts;
  readonly #busy: Busy | undefined;
  readonly #over: AbortSignal;
  readonly #underWay: Set<AbortController> = new Set();
  /** The attempt that has reached a busy peer. */
  #reached: AbortController | undefined;
  /** The start of the next attempt. */
  #next: Deadline | undefined;

  constructor(attempts: Attempts, busy: Busy | undefined, over: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<Connected>();
    this.made = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#attempts = attempts;
    this.#busy = busy;
    this.#over = over;
    over.addEventListener("abort", this.#onOver);
    if (over.aborted) this.#fail(unwanted());
    else this.#begin();
  }

  readonly #onOver = (): void => this.#fail(unwanted());

  readonly #begin = (): void => {
    const { attempt, isNaming } = this.#attempts;
    // Another attempt would wait for the same look-up.
    if (this.#underWay.size > 0 && isNaming()) return this.#beginIn(hedgeMs);
    const own = new AbortController();
    this.#underWay.add(own);
    const sinceMs = clockMs();
    this.#beginIn(hedgeMs);
    attempt(own.signal, () => this.#isReached(own)).then(
      (connected) => {
        if (this.#underWay.has(own)) this.#succeed(own, connected);
        else connected.channel.close(cutOff);
      },
      (error: Error) => this.#failed(own, error, clockMs() - sinceMs),
    );
  };

  #beginIn(ms: number): void {
    this.#next?.end();
    this.#next = deadline(ms, this.#begin);
  }

  #isReached(own: AbortController): void {
    const busy = this.#busy;
    if (busy === undefined || !this.#underWay.has(own)) return;
    this.#reached = own;
    this.#giveUpOthers(own);
    this.#beginIn(busy.times.next().value);
    busy.onReached();
  }

  #failed(own: AbortController, error: Error, tookMs: number): void {
    if (!this.#underWay.delete(own)) return;
    if (this.#reached === own) this.#reached = undefined;
    const isLate = tookMs >= handshakeMs;
    if (this.#reached !== undefined || (this.#underWay.size > 0 && !isLate)) return;
    this.#fail(error);
  }

  #succeed(own: AbortController, connected: Connected): void {
    this.#end();
    this.#giveUpOthers(own);
    this.#resolve(connected);
  }

  #fail(error: Error): void {
    this.#end();
    this.#giveUpOthers();
    this.#reject(error);
  }

  #end(): void {
    this.#next?.end();
    this.#over.removeEventListener("abort", this.#onOver);
  }

  #giveUpOthers(but?: AbortController): void {
    for (const other of this.#underWay) {
      if (other === but) continue;
      this.#underWay.delete(other);
      other.abort();
    }
  }
}

function unwanted(): RaySystemError {
  return new RaySystemError("the connection is not wanted any more");
}

/** The first time, in ms; it doubles. */
const firstAnswerMs = 800;
const longestAnswerMs = 60_000;
/** This many attempts may follow quickly. */
const quickAttempts = 20;
/** The longest quick time, as a fraction of the longest cut. */
const quickPart = 1 / 16;

/**
 * Yields how long a reached peer has to answer over one connection before the dialler tries another
 * one, attempt by attempt.
 *
 * An accepted connection may have lost its other end, so the next one may be better, and the peer
 * waits for it only as long as a cut may last. But a busy host accepts none of them until it has
 * time, and each abandoned one fills its backlog. So the first attempts follow quickly, as many as
 * a few cuts may need, and later ones ever more rarely.
 */
export function* answerTimes(reconnectTimeoutMs: number): Generator<number, never> {
  const soonMs = Math.max(firstAnswerMs, reconnectTimeoutMs * quickPart);
  let ms = firstAnswerMs;
  for (let count = 1; ; count++) {
    yield ms;
    ms = Math.min(2 * ms, count < quickAttempts ? soonMs : longestAnswerMs);
  }
}
