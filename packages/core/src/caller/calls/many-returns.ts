/** The refs of a call that returns several values: all are ready at once, or all fail. */
import type { Encoded } from "../../protocol/codec.ts";
import type { FailureData } from "../../protocol/failure.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import type { Returns } from "./call.ts";
import type { ClientObjects } from "./client-link.ts";

export class ManyReturns implements Returns {
  readonly entries: readonly ObjectEntry[];
  readonly #objects: ClientObjects;

  constructor(entries: readonly ObjectEntry[], objects: ClientObjects) {
    this.entries = entries;
    this.#objects = objects;
  }

  resolveAll(values: readonly Encoded[]): void {
    for (const [index, entry] of this.entries.entries()) {
      const value = values[index];
      // The host has checked that there are as many.
      if (value !== undefined) this.#objects.settle(entry, value);
    }
  }

  fail(failure: FailureData): void {
    for (const entry of this.entries) entry.reject(failure);
  }
}
