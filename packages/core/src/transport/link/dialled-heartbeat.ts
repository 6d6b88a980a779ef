/**
 * The heartbeat of a link on the side that dials (heartbeat.ts): makes it before the link's own
 * connection, makes another one when that is wanted, and reports its loss.
 */
import type { DeathCause } from "../../shared/errors.ts";
import type { SocketChannel } from "../socket/socket.ts";

export interface HeartbeatWay {
  /**
   * Makes a heartbeat; `onReached` is called when the peer's machine has accepted it. Rejects when
   * it cannot be made, or `signal` aborts.
   */
  readonly dial: (onReached: () => void, signal: AbortSignal) => Promise<SocketChannel>;
  /**
   * Whether an error proves that the peer is gone or unreachable. Other errors may mean that it has
   * no room or no time for the heartbeat.
   */
  readonly isLoss: (error: unknown) => boolean;
}

/** The link's answers to the events of its heartbeat. */
export interface HeartbeatEvents {
  /** The peer has proved who it is. */
  readonly onProved: () => void;
  /** @param hasEnded whether the peer has ended it */
  readonly onLost: (hasEnded: boolean) => void;
}

export class DialledHeartbeat {
  readonly isLoss: HeartbeatWay["isLoss"];
  readonly #dial: HeartbeatWay["dial"];
  #events: HeartbeatEvents | undefined;
  #current: SocketChannel | undefined;
  #isOver = false;

  constructor({ dial, isLoss }: HeartbeatWay) {
    this.#dial = dial;
    this.isLoss = isLoss;
  }

  /** The current heartbeat, if there is one. */
  get channel(): SocketChannel | undefined {
    return this.#current?.isOpen === true ? this.#current : undefined;
  }

  /** Reports to the link from now on. */
  reportTo(events: HeartbeatEvents): void {
    this.#events = events;
  }

  /** Resolves when there is a heartbeat. Rejects as `dial` does. */
  async need(onReached: () => void, signal: AbortSignal): Promise<void> {
    if (this.channel === undefined) this.#hold(await this.#dial(onReached, signal));
  }

  /** Makes another heartbeat in place of the current one. Rejects as `dial` does. */
  async replace(signal: AbortSignal): Promise<void> {
    this.#hold(await this.#dial(() => undefined, signal));
  }

  /** Drops a heartbeat that the peer has lost, as it says itself. */
  refused(): void {
    this.drop();
    this.#events?.onProved();
  }

  /** Drops a heartbeat whose other end is gone. */
  drop(): void {
    this.#current?.close(dropped);
  }

  /** Ends the heartbeat with its link. Idempotent. */
  end(): void {
    this.#isOver = true;
    this.#current?.close(over);
  }

  #hold(made: SocketChannel): void {
    const last = this.#current;
    this.#current = made;
    hearNothing(made);
    void made.closed.then(() => {
      // The end of a replaced heartbeat says nothing.
      if (made !== this.#current) return;
      this.#current = undefined;
      this.#events?.onLost(made.hasEnded);
    });
    last?.close(replaced);
    if (this.#isOver) return made.close(over);
    this.#events?.onProved();
  }
}

/** Closes a heartbeat that receives a batch: nobody would read it. */
export function hearNothing(heartbeat: SocketChannel): void {
  heartbeat.onMessage(() => heartbeat.close(talking));
}

export const replaced: DeathCause = {
  kind: "unreachable",
  message: "another one took its place",
};
export const over: DeathCause = { kind: "unreachable", message: "the connection ended" };
const dropped: DeathCause = { kind: "unreachable", message: "its other end is gone" };
const talking: DeathCause = { kind: "unreachable", message: "it received data" };
