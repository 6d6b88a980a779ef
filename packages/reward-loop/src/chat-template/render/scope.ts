/**
 * Names and their values, in blocks that stand in blocks: a block sees what is around it, and
 * what it sets is its own.
 */

import type { Value } from "../python/values.ts";

export class Scope {
  readonly #values = new Map<string, Value>();
  readonly #parent: Scope | undefined;

  constructor(parent?: Scope) {
    this.#parent = parent;
  }

  get(name: string): Value | undefined {
    return this.#values.has(name) ? this.#values.get(name) : this.#parent?.get(name);
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }
}
