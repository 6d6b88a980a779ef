/**
 * The refs of a call that returns several values: all are ready at once. If its generator fails,
 * the values before that come as items, just before the failure, which is that of the rest.
 */
import type { Encoded } from "../../protocol/codec.ts";
import type { FailureData } from "../../protocol/failure.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import type { Returns } from "./call.ts";
import type { ClientLink } from "./client-link.ts";

export class ManyReturns implements Returns {
  readonly entries: readonly ObjectEntry[];
  readonly #link: ClientLink;
  /** Held until it is known that the call is not tried again. */
  #items: Encoded[] = [];

  constructor(entries: readonly ObjectEntry[], link: ClientLink) {
    this.entries = entries;
    this.#link = link;
  }

  sent(): void {
    for (const item of this.#items.splice(0)) this.#link.values.decline(item);
  }

  item(index: number, value: Encoded): void {
    const isNext = index === this.#items.length && index < this.entries.length;
    if (isNext) this.#items.push(value);
    else this.#link.values.decline(value);
  }

  failing(): void {
    this.resolveAll(this.#items.splice(0));
  }

  resolveAll(values: readonly Encoded[]): void {
    for (const [index, entry] of this.entries.entries()) {
      const value = values[index];
      // The host has checked that there are as many, unless the rest fails.
      if (value !== undefined) this.#link.objects.settle(entry, value);
    }
  }

  fail(failure: FailureData): void {
    for (const entry of this.entries) entry.reject(failure);
  }
}
