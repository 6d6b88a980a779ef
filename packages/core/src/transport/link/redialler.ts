/** Makes the next connection of a link that was cut, with pauses between the attempts. */
import { AuthenticationError, ProtocolVersionError, RaySystemError } from "../../shared/errors.ts";
import { asError } from "../../shared/errors/thrown.ts";
import { deadline } from "../deadline.ts";
import type { SocketChannel } from "../socket/socket.ts";
import { timers } from "../../shared/machine/timers.ts";

/**
 * A connection over which a link goes on, and the number of this side's batches that the peer has.
 */
export interface Resumed {
  readonly wire: SocketChannel;
  readonly received: number;
}

/**
 * Makes a connection and reports the number of received batches; `onReached` is called when the
 * peer's machine has accepted it. Rejects when `signal` aborts, and with LinkRefused when the peer
 * no longer knows the link.
 */
export type Redial = (
  received: number,
  onReached: () => void,
  signal: AbortSignal,
) => Promise<Resumed>;

/** The peer answered but no longer knows the link. */
export class LinkRefused extends RaySystemError {}

/** Whether the peer's answer was final: it would repeat it. */
export function isFinal(error: unknown): boolean {
  return (
    error instanceof LinkRefused ||
    error instanceof AuthenticationError ||
    error instanceof ProtocolVersionError
  );
}

/**
 * The first pause after a useless connection, in ms; it doubles up to the longest. A short longest
 * pause finds a network that is back for only a second.
 */
const pauseMs = { first: 50, longest: 500 };

export interface RediallerParts {
  readonly redial: Redial;
  /** Whether the link is open. Nobody waits for the last attempt of a closed one. */
  readonly isOpen: () => boolean;
  /** Whether a connection is missing, and of use. */
  readonly isWanted: () => boolean;
  /** The number of received batches. */
  readonly received: () => number;
  readonly onReached: () => void;
  readonly onConnected: (resumed: Resumed) => void;
  /** An attempt has failed; another one follows. */
  readonly onFailed: () => void;
  /** The peer has refused the link. */
  readonly onRefused: (error: Error) => void;
  /** No more connection is made. */
  readonly onOver: () => void;
}

export class Redialler {
  readonly #parts: RediallerParts;
  /** Aborts the attempts to connect. */
  readonly #attempts: AbortController = new AbortController();
  /** The pause before the next attempt, in ms. */
  #pauseMs = 0;
  #wake: (() => void) | undefined;
  #failure: Error | undefined;

  constructor(parts: RediallerParts) {
    this.#parts = parts;
    this.#attempts.signal.addEventListener("abort", () => parts.onOver(), { once: true });
  }

  /** The error of the last attempt to reach the peer. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** A connection was made. */
  succeeded(): void {
    this.#failure = undefined;
  }

  /** A connection was cut that was of use for so long, in ms. */
  cutAfter(ms: number): void {
    if (ms >= pauseMs.longest) this.#pauseMs = 0;
  }

  /** Tries until there is a connection, or none is wanted. */
  async run(): Promise<void> {
    const { redial, isOpen, isWanted, received, onReached, onConnected, onFailed, onRefused } =
      this.#parts;
    for (;;) {
      if (this.#pauseMs > 0 && isOpen()) await this.#pause(this.#pauseMs);
      const isLast = !isOpen();
      if (!isWanted()) return;
      this.#pauseMs = Math.min(Math.max(pauseMs.first, 2 * this.#pauseMs), pauseMs.longest);
      try {
        return onConnected(await redial(received(), onReached, this.#attempts.signal));
      } catch (error) {
        if (isLast) return;
        this.#failure = asError(error);
        if (isFinal(error)) return onRefused(this.#failure);
        onFailed();
      }
    }
  }

  /** @param graceMs the time for a last connection, if one is wanted, in ms */
  end(graceMs: number | undefined): void {
    this.#wake?.();
    if (graceMs === undefined) this.#attempts.abort();
    else deadline(graceMs, () => this.#attempts.abort());
  }

  /** Random pauses spread the links that lost a peer together. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = timers.setTimeout(resolve, ms * (0.5 + Math.random())).unref();
    await promise;
    timers.clearTimeout(timer);
  }
}
