/** The end of a link's peer, and how it is explained. */
import type { DeathCause } from "../../shared/errors.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface PeerEndParts {
  /** Resolves when the peer is known to be gone; it may never settle. */
  readonly explain: () => Promise<DeathCause>;
  /** Delays the time to explain the loss of the peer until it settles. */
  readonly whenExplainable: (() => Promise<unknown>) | undefined;
  /** The time to explain the loss of the peer and to receive its last data, in ms. */
  readonly explainMs: number;
  /** Whether there is a connection, over which its last data may arrive. */
  readonly isConnected: () => boolean;
  /** Milliseconds since data last arrived from the peer. */
  readonly silentMs: () => number;
  readonly onEnd: (cause: DeathCause) => void;
}

export class PeerEnd {
  readonly #parts: PeerEndParts;
  #cause: DeathCause | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(parts: PeerEndParts) {
    this.#parts = parts;
    parts.explain().then(
      (cause) => this.#known(cause),
      // A failed explanation says nothing; the connection decides.
      () => undefined,
    );
  }

  /** The cause of the peer's end, once that is known; its last data may still arrive. */
  get cause(): DeathCause | undefined {
    return this.#cause;
  }

  /**
   * Ends the link with the explanation of the peer's end, for which it waits a limited time, or
   * with that message.
   *
   * @param isStillSo whether the peer is still lost when no explanation came
   */
  async look(message: string, error?: Error, isStillSo: () => boolean = () => true): Promise<void> {
    const cause: DeathCause = {
      kind: "unreachable",
      message,
      ...(error === undefined ? {} : { error }),
    };
    const explained = await this.#explanationOr(cause);
    if (explained !== cause || isStillSo()) this.#parts.onEnd(explained);
  }

  /** The link has ended. */
  stop(): void {
    this.#isStopped = true;
    timers.clearTimeout(this.#timer);
  }

  async #explanationOr(cause: DeathCause): Promise<DeathCause> {
    const { explain, whenExplainable, explainMs } = this.#parts;
    const { promise: late, resolve } = Promise.withResolvers<DeathCause>();
    let timer: NodeJS.Timeout | undefined;
    const wait = (): void => {
      timer = timers.setTimeout(() => resolve(cause), explainMs).unref();
    };
    if (whenExplainable === undefined) wait();
    else void whenExplainable().then(wait, wait);
    const explained = await Promise.race([explain(), late]).catch(() => cause);
    timers.clearTimeout(timer);
    return explained;
  }

  /** The link ends with its connection, unless that was only cut. */
  #known(cause: DeathCause): void {
    if (this.#isStopped) return;
    this.#cause = cause;
    const { isConnected, onEnd } = this.#parts;
    const waitMs = isConnected() ? this.#lastDataMs(cause) : 0;
    if (waitMs <= 0) return onEnd(cause);
    this.#timer = timers.setTimeout(() => onEnd(cause), waitMs).unref();
  }

  /** A process that ends closes its connection behind its last data; a lost machine does not. */
  #lastDataMs({ kind }: DeathCause): number {
    const { explainMs, silentMs } = this.#parts;
    return kind === "node-died" ? explainMs - silentMs() : explainMs;
  }
}
