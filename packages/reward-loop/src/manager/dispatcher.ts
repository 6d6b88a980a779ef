/**
 * Single samples to workers: the one with the least to do gets the next, none more than its concurrency. No barrier, no polling.
 *
 * Invariant: every sample settles exactly once. One that was with a worker that died had no outcome and goes first when it is sent again.
 */

import * as ray from "@rayling/core";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { RewardLoopClosedError } from "../errors.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { RewardLoopSettings } from "../settings.ts";
import type { WorkerSeat } from "./worker-seat.ts";

/** One at work, one ready in its thread, two on their way to and from the worker (measured on 2 cores: 16 give a fifth more). */
const SYNC_PER_EXECUTOR = 4;

interface Waiting {
  readonly sample: RewardSample;
  readonly resolve: (outcome: SampleOutcome) => void;
  readonly reject: (error: unknown) => void;
}

export class Dispatcher {
  readonly #seats: readonly WorkerSeat[];
  readonly #settings: RewardLoopSettings;
  #waiting: Waiting[] = [];
  #closed = false;

  constructor(seats: readonly WorkerSeat[], settings: RewardLoopSettings) {
    this.#seats = seats;
    this.#settings = settings;
    for (const seat of seats) seat.onChange(() => this.#pump());
  }

  /** How many samples can be with the workers at once. */
  get slots(): number {
    return this.#seats.reduce((sum, seat) => sum + this.#slotsOf(seat), 0);
  }

  submit(sample: RewardSample): Promise<SampleOutcome> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new RewardLoopClosedError());
      this.#waiting.push({ sample, resolve, reject });
      this.#pump();
    });
  }

  close(): void {
    this.#closed = true;
    this.#rejectAll(new RewardLoopClosedError());
  }

  #pump(): void {
    while (this.#waiting.length > 0) {
      const seat = this.#leastLoaded();
      if (seat === undefined) break;
      void this.#send(seat, this.#waiting.shift() as Waiting);
    }
    if (this.#waiting.length > 0 && this.#seats.every(({ state }) => state === "lost")) {
      void this.#seats[0]?.failure.then((error) => this.#rejectAll(error));
    }
  }

  async #send(seat: WorkerSeat, waiting: Waiting): Promise<void> {
    seat.take(1);
    try {
      const answer = await seat.call((worker) => worker.computeScore.remote(waiting.sample));
      if (answer !== undefined) waiting.resolve(answer.value);
      else if (this.#closed) waiting.reject(new RewardLoopClosedError());
      else this.#waiting.unshift(waiting);
    } catch (error) {
      if (error instanceof ray.NotEncodableError) waiting.resolve(unsendable(error));
      else waiting.reject(error);
    } finally {
      seat.release(1);
    }
  }

  /** Behind a synchronous function samples would only queue up, out of reach of workers that have nothing to do. */
  #slotsOf({ overlaps }: WorkerSeat): number {
    const { concurrency, executors } = this.#settings;
    return overlaps ? concurrency : Math.min(concurrency, SYNC_PER_EXECUTOR * executors);
  }

  #leastLoaded(): WorkerSeat | undefined {
    const free = this.#seats.filter(
      (seat) => seat.state === "alive" && seat.load < this.#slotsOf(seat),
    );
    return free.reduce<WorkerSeat | undefined>(
      (least, seat) => (least === undefined || seat.load < least.load ? seat : least),
      undefined,
    );
  }

  #rejectAll(error: unknown): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { reject } of waiting) reject(error);
  }
}

/** A sample that cannot travel is its own outcome, and nobody else's. */
function unsendable(error: ray.NotEncodableError): SampleOutcome {
  const { name, message } = error;
  return {
    valid: false,
    error: { code: "INVALID_SAMPLE", name, message },
    latencyMs: 0,
    attempts: 0,
  };
}
