/**
 * Calls that are with an earlier life of their actor, or on their way back from it. They go first:
 * nothing is sent to the actor until it is known which of them go again.
 */
import type { FailureData } from "../../../protocol/failure.ts";
import type { Call } from "../call.ts";

export class ReturningCalls {
  #count = 0;
  /** The calls that go again, so far. */
  #again: Call[] | undefined;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** This many calls that were sent to the actor are returning now. */
  add(count: number): void {
    this.#count += count;
  }

  goesAgain(call: Call): void {
    (this.#again ??= []).push(call);
  }

  /**
   * This many calls are back: they have their answer, or go again. Returns whether they were the
   * last; the calls that go again are first in their queues then, in the order they were made in.
   */
  back(count: number): boolean {
    this.#count -= count;
    if (this.#count > 0) return false;
    const again = (this.#again ?? []).toSorted(
      (left, right) => right.entry.sequence - left.entry.sequence,
    );
    this.#again = undefined;
    for (const call of again) call.queue.unshift(call);
    return true;
  }

  calls(): Iterable<Call> {
    return this.#again ?? [];
  }

  fail(failure: FailureData): void {
    const again = this.#again ?? [];
    this.#again = undefined;
    for (const call of again) if (!call.isSettled) call.fail(failure);
  }
}
