/**
 * The connection of a link: which one there is, how long a cut may last, and the attempts to make
 * the next. The side that was dialled makes none: it waits.
 *
 * A peer that cannot be reached for `reconnectTimeoutMs` is lost. A peer that was reached and does
 * not answer yet is busy: that time does not count. Nor does the time of a dialler that holds a
 * heartbeat, for up to half an hour. A connection that breaks before any data came over it does not
 * restart the time.
 */
import { clockMs } from "../../shared/clock.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { TimeLimit } from "../deadline.ts";
import type { SocketChannel } from "../socket/socket.ts";
import { timers } from "../../shared/machine/timers.ts";
import { Cuts } from "./cuts.ts";
import type { DialledHeartbeat } from "./dialled-heartbeat.ts";
import { askWord, goodbyeWord } from "./link-words.ts";
import { type Redial, Redialler, type Resumed } from "./redialler.ts";

/**
 * A dialler that is silent for this long is gone, even if its machine answers: unless its thread is
 * held, it asks every few seconds.
 */
export const longestSilenceMs: number = 30 * 60 * 1000;

export interface LinkConnectionParts {
  /** The name of the peer, for messages to people. */
  readonly peer: string;
  /** Makes a connection; undefined at the side that was dialled. */
  readonly redial: Redial | undefined;
  /** The heartbeat that this side makes; undefined at the side that was dialled. */
  readonly heartbeat: DialledHeartbeat | undefined;
  /** The longest cut, in ms. */
  readonly reconnectTimeoutMs: number;
  /** The time for the last connection of a closed link, in ms. */
  readonly goodbyeMs: number;
  /** Whether the link goes on: it is open, and its peer is not known to be gone. */
  readonly goesOn: () => boolean;
  /** The number of received batches. */
  readonly received: () => number;
  /** Milliseconds since data last arrived from the peer. */
  readonly silentMs: () => number;
  /** Goes on over a connection that was made. */
  readonly onConnected: (resumed: Resumed) => void;
  /** The connection has ended. Returns whether the link goes on, because it was only cut. */
  readonly onEnded: (reason: DeathCause) => boolean;
  /** The connection was cut, and the link goes on. */
  readonly onCut: (() => void) | undefined;
  /** The peer cannot be reached, for good when `isStillSo`. */
  readonly onLost: (message: string, error: Error | undefined, isStillSo: () => boolean) => void;
}

export class LinkConnection {
  readonly #parts: LinkConnectionParts;
  /** The time budget of a cut: it runs while the link is cut and the peer is not reached. */
  readonly #timeLimit: TimeLimit;
  readonly #cuts: Cuts;
  readonly #redialler: Redialler | undefined;
  #wire: SocketChannel | undefined;
  #attachedAt = 0;
  #isHeldBeside = false;
  #isOpen = true;
  /** Whether the link was closed while it was cut. */
  #owesGoodbye = false;

  constructor(parts: LinkConnectionParts) {
    this.#parts = parts;
    this.#cuts = new Cuts(parts.peer);
    this.#timeLimit = new TimeLimit(parts.reconnectTimeoutMs, () => this.#giveUpPeer());
    const { redial, heartbeat } = parts;
    // A proved heartbeat gives the whole time back, as a proved connection does.
    const onProved = (): void => this.#timeLimit.renew();
    heartbeat?.reportTo({ onProved, onLost: (hasEnded) => this.lostBeside(hasEnded) });
    if (redial === undefined) return;
    this.#redialler = new Redialler({
      redial,
      isOpen: () => this.#isOpen,
      isWanted: () => this.#wire === undefined && (parts.goesOn() || this.#owesGoodbye),
      received: parts.received,
      onReached: () => this.#timeLimit.stop(),
      onConnected: (resumed) => {
        if (this.#owesGoodbye) {
          resumed.wire.sendWord(goodbyeWord());
          resumed.wire.close(replaced);
        } else parts.onConnected(resumed);
      },
      onFailed: () => {
        // The time budget of the first connection starts at its first failure.
        if (this.#isOpen) this.#timeLimit.run();
      },
      onRefused: (error) => parts.onLost(error.message, error, () => true),
      onOver: () => heartbeat?.end(),
    });
  }

  /** The connection, possibly a dead one, if there is one. */
  get wire(): SocketChannel | undefined {
    return this.#wire;
  }

  /** Whether, on the dialled side, the peer holds a heartbeat beside the link. */
  get isHeldBeside(): boolean {
    return this.#isHeldBeside;
  }

  /** The number of cuts. */
  get cuts(): number {
    return this.#cuts.count;
  }

  /** The longest cut, in ms. */
  get reconnectTimeoutMs(): number {
    return this.#parts.reconnectTimeoutMs;
  }

  /**
   * Whether there is a connection, possibly a dead one: a connection that can no longer be written
   * to may never report its end.
   */
  get isAttached(): boolean {
    return this.#wire !== undefined;
  }

  /** Asks the peer to send a word. */
  ask(): void {
    this.#wire?.sendWord(askWord());
  }

  /** Makes the first connection of a link that has none yet. */
  begin(): void {
    void this.#redialler?.run();
  }

  /** Takes the place of the last connection. */
  use(wire: SocketChannel): void {
    const last = this.#wire;
    this.#wire = wire;
    last?.close(replaced);
    this.#timeLimit.renew();
    this.#attachedAt = clockMs();
    this.#redialler?.succeeded();
    void wire.closed.then((reason) => this.#ended(wire, reason));
    const { heartbeat } = this.#parts;
    // It may have broken since the connection was made.
    if (heartbeat !== undefined) this.#cutUnheld(wire, false);
  }

  /** Drops a connection that is known to be dead; the link goes on over the next one. */
  cut(): void {
    this.#wire?.close(givenUp);
  }

  /**
   * Says goodbye at the end of a process, where nothing is closed any more. A socket takes as much
   * as fits into its buffers at once. Under TLS it does not while the last write is under way,
   * because its completion event never comes: then the goodbye goes over the heartbeat, where
   * nothing else is written.
   */
  sayGoodbyeNow(until: number): void {
    const wire = this.#wire;
    if (wire?.canWriteNow !== true) return this.#parts.heartbeat?.channel?.sendWord(goodbyeWord());
    // With unread data here, TCP would make the peer drop the goodbye.
    wire.poll();
    wire.sendWord(goodbyeWord());
    wire.drainNow(until);
  }

  /**
   * The peer holds a heartbeat now: a cut may last as long as the heartbeat, and a full time budget
   * after it.
   */
  heldBeside(): void {
    this.#isHeldBeside = true;
    if (this.#wire === undefined) this.#renew();
  }

  /** The peer has proved who it is, over a connection that the link does not take. */
  turnedAway(): void {
    if (this.#wire === undefined) this.#renew();
  }

  /**
   * The heartbeat is gone, and the network that both used; or the peer `hasEnded` it, as it is
   * about to end the link, whose last data may still arrive.
   */
  lostBeside(hasEnded: boolean = false): void {
    const wasHeld = this.#isHeldBeside;
    this.#isHeldBeside = false;
    if (this.#wire !== undefined) this.#cutUnheld(this.#wire, hasEnded);
    else if (wasHeld) this.#renew();
  }

  /** Drops a connection without a heartbeat: when nothing more arrives, if there is last data. */
  #cutUnheld(wire: SocketChannel, mayArrive: boolean): void {
    const { heartbeat, silentMs } = this.#parts;
    if (wire !== this.#wire || this.#isHeldBeside || heartbeat?.channel !== undefined) return;
    if (!mayArrive) return wire.close(givenUp);
    const look = (): void => this.#cutUnheld(wire, silentMs() < lastDataMs);
    timers.setTimeout(look, lastDataMs).unref();
  }

  /** Says goodbye; a cut link dials once more for that, if the peer knows it. */
  sayGoodbye(): void {
    this.#owesGoodbye = this.#wire === undefined && this.#attachedAt > 0;
    this.#wire?.sendWord(goodbyeWord());
  }

  /** Ends the connection with the link. */
  end(reason: DeathCause): void {
    this.#isOpen = false;
    this.#timeLimit.stop();
    this.#redialler?.end(this.#owesGoodbye ? this.#parts.goodbyeMs : undefined);
    this.#wire?.close(reason);
  }

  #renew(): void {
    if (!this.#parts.goesOn()) return;
    this.#timeLimit.renew();
    this.#timeLimit.run();
  }

  #ended(wire: SocketChannel, reason: DeathCause): void {
    if (!this.#isOpen || wire !== this.#wire) return;
    this.#wire = undefined;
    if (!this.#parts.onEnded(reason)) return;
    this.#cuts.add();
    this.#parts.onCut?.();
    this.#redialler?.cutAfter(clockMs() - this.#attachedAt);
    this.#cuts.warnOfFlapping();
    if (this.#isOpen) this.#timeLimit.run();
    this.begin();
  }

  /**
   * Gives up a peer that cannot be reached, if nothing arrives from it while its end is being
   * explained. Another cut meanwhile has its own time.
   */
  #giveUpPeer(): void {
    const { onLost, silentMs } = this.#parts;
    // The peer computes, and dials when it has time.
    if (this.#isHeldBeside && silentMs() < longestSilenceMs) {
      return this.#renew();
    }
    onLost(this.#notReached(), this.#redialler?.failure, () => this.#timeLimit.isOver);
  }

  /** Says how long the peer was unreachable, and why, if this side dialled. */
  #notReached(): string {
    const { peer, reconnectTimeoutMs } = this.#parts;
    const message = `${peer} could not be reached for ${reconnectTimeoutMs / 1000} s`;
    const failure = this.#redialler?.failure;
    if (failure === undefined) return message;
    return `${message}: ${failure.message.replace(`${peer} cannot be reached: `, "")}`;
  }
}

/** The time between two pieces of a peer's last data, in ms: TCP sends a lost one again earlier. */
const lastDataMs = 1000;

const givenUp: DeathCause = { kind: "unreachable", message: "the connection broke" };
/** The cause of a connection that is not the link's any more. */
export const replaced: DeathCause = {
  kind: "unreachable",
  message: "another connection took its place",
};
