/**
 * `loop` inside of a for: where it is, and what lies before and behind. Nothing is read ahead
 * unless the template asks.
 */

import { equals } from "../python/compare.ts";
import { fail } from "../error.ts";
import { Callable, orUndefined, Tuple, Undefined } from "../python/values.ts";
import type { Arguments, Iter, Value } from "../python/values.ts";

export class Loop {
  readonly #source: Iter;
  /** The length of the source if it has one; else counted on demand. */
  #length: number | undefined;
  readonly #depth0: number;
  #ahead: Value[] = [];
  #index0 = -1;
  #before: Value | undefined;
  #current: Value | undefined;
  #changed: Value | undefined;
  readonly #recurse: ((items: Value, depth0: number) => string) | undefined;

  constructor(
    source: Iter,
    length: number | undefined,
    depth0: number,
    recurse: ((items: Value, depth0: number) => string) | undefined,
  ) {
    this.#source = source;
    this.#length = length;
    this.#depth0 = depth0;
    this.#recurse = recurse;
  }

  /** Undefined at the end. */
  next(): Value | undefined {
    const item = this.#ahead.length > 0 ? this.#ahead.shift() : this.#source.next();
    if (item === undefined) return undefined;
    this.#index0 += 1;
    this.#before = this.#current;
    this.#current = item;
    return item;
  }

  get value(): Value {
    return new Callable(
      "loop",
      (given) => this.#call(given),
      (name) => this.#attribute(name),
    );
  }

  #call({ positional: [items = null] }: Arguments): Value {
    if (this.#recurse === undefined) {
      return fail("The loop must have the 'recursive' marker to be called recursively.");
    }
    return this.#recurse(items, this.#depth0 + 1);
  }

  #attribute(name: string): Value | undefined {
    const at = this.#index0;
    switch (name) {
      case "index":
        return BigInt(at + 1);
      case "index0":
        return BigInt(at);
      case "revindex":
        return BigInt(this.#size() - at);
      case "revindex0":
        return BigInt(this.#size() - at - 1);
      case "first":
        return at === 0;
      case "last":
        return this.#peek() === undefined;
      case "length":
        return BigInt(this.#size());
      case "depth":
        return BigInt(this.#depth0 + 1);
      case "depth0":
        return BigInt(this.#depth0);
      case "previtem":
        return at === 0 ? new Undefined("there is no previous item") : this.#before;
      case "nextitem":
        return orUndefined(this.#peek(), "there is no next item");
      case "cycle":
        return new Callable(name, ({ positional: items }) => {
          return items.length === 0
            ? fail("no items for cycling given")
            : items[at % items.length]!;
        });
      case "changed":
        return new Callable(name, ({ positional: values }) => this.#hasChanged(new Tuple(values)));
      default:
        return undefined;
    }
  }

  #hasChanged(values: Value): boolean {
    if (this.#changed !== undefined && equals(this.#changed, values)) return false;
    this.#changed = values;
    return true;
  }

  #peek(): Value | undefined {
    if (this.#ahead.length === 0) {
      const item = this.#source.next();
      if (item !== undefined) this.#ahead.push(item);
    }
    return this.#ahead[0];
  }

  #size(): number {
    if (this.#length === undefined) {
      this.#ahead.push(...this.#source.rest());
      this.#length = this.#index0 + 1 + this.#ahead.length;
    }
    return this.#length;
  }
}
