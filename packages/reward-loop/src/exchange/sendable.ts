/**
 * A score function's return value, prepared to travel together with others. A big value, or one
 * that may not be able to travel at all, goes by itself, so that a failure costs no other sample.
 */

import { isRecord } from "@rayling/reward-manager-registry/values";

export type Said = Readonly<Record<string, unknown>>;

const most = { values: 1_000, characters: 16_384, levels: 8 } as const;

/**
 * Returns the value, or a copy where it contains objects: reading these may run user code (getters,
 * proxies), which happens here and not again on the way. Undefined: it has to go by itself.
 */
export function sendable<Whole extends object>(said: Whole): Whole | undefined {
  if (isFlat(said)) return said;
  const reading = new Reading();
  const copy = reading.object(said, 0);
  if (reading.isRefused) return undefined;
  return reading.hasObjects ? (copy as Whole) : said;
}

/** A plain object of a few numbers, texts and the like: most are, and need no copy. */
function isFlat(said: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(said);
  if (prototype !== Object.prototype || !isRecord(said)) return false;
  let [values, characters] = [0, 0];
  for (const key in said) {
    const value = said[key];
    if (isCompound(value) || key === "__proto__") return false;
    characters += key.length + (typeof value === "string" ? value.length : 0);
    values += 1;
  }
  return values <= most.values && characters <= most.characters;
}

function isCompound(value: unknown): boolean {
  const kind = typeof value;
  return (kind === "object" && value !== null) || kind === "function" || kind === "symbol";
}

class Reading {
  isRefused = false;
  hasObjects = false;
  #values: number = most.values;
  #characters: number = most.characters;
  #seen: Set<object> | undefined;

  object(value: object, level: number): unknown {
    const prototype: unknown = Object.getPrototypeOf(value);
    const isPlain = prototype === Object.prototype || prototype === null;
    if (!isPlain || Object.hasOwn(value, "__proto__")) return this.#refuse();
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      this.#characters -= key.length;
      copy[key] = this.#value((value as Said)[key], level);
      if (this.isRefused) return undefined;
    }
    return copy;
  }

  #value(value: unknown, level: number): unknown {
    this.#values -= 1;
    if (typeof value === "string") this.#characters -= value.length;
    if (this.#values < 0 || this.#characters < 0) return this.#refuse();
    if (typeof value === "function" || typeof value === "symbol") return this.#refuse();
    if (typeof value !== "object" || value === null) return value;
    this.hasObjects = true;
    this.#seen ??= new Set();
    if (level === most.levels || this.#seen.has(value)) return this.#refuse();
    this.#seen.add(value);
    return isPlainArray(value) ? this.#array(value, level + 1) : this.object(value, level + 1);
  }

  #array(values: readonly unknown[], level: number): unknown {
    const copy: unknown[] = [];
    for (const value of values) {
      copy.push(this.#value(value, level));
      if (this.isRefused) return undefined;
    }
    return copy;
  }

  #refuse(): undefined {
    this.isRefused = true;
    return undefined;
  }
}

function isPlainArray(value: object): value is readonly unknown[] {
  return Array.isArray(value) && Object.getPrototypeOf(value) === Array.prototype;
}
