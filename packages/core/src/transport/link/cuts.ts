/** Counts the cuts of a link, and warns of a connection that is cut again and again. */
import { clockMs } from "../../shared/clock.ts";
import { warn } from "../../shared/text/warning.ts";

/** This many cuts within this time cause a warning, at most once in that time. */
const flapping = { cuts: 5, ms: 60_000 };

export class Cuts {
  /** The name of the peer, for messages to people. */
  readonly #peer: string;
  #count = 0;
  /** The times of the last cuts, within the warning period. */
  #last: number[] = [];
  #warnedAt = -Infinity;

  constructor(peer: string) {
    this.#peer = peer;
  }

  get count(): number {
    return this.#count;
  }

  add(): void {
    this.#count += 1;
  }

  warnOfFlapping(): void {
    const now = clockMs();
    this.#last = [...this.#last.filter((at) => now - at < flapping.ms), now];
    if (this.#last.length < flapping.cuts || now - this.#warnedAt < flapping.ms) return;
    this.#warnedAt = now;
    warn(
      `the connection to ${this.#peer} was cut ${this.#last.length} times within ${flapping.ms / 1000} s; nothing is lost, and everything takes longer`,
    );
  }
}
