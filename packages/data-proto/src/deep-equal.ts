/**
 * Whether two per-sample or meta values are equal in the sense of verl's union: equal kind, dtype
 * and shape, NaN equals NaN, 0 equals -0, recursion through arrays and plain objects, cycles
 * allowed. node:util compares any other value (Map, Set, Date, class instances).
 *
 * node:util alone does not do: it tells 0 from -0, and a codec may turn -0 into 0 on the way to an
 * actor and back. The comparison works off a list instead of recursing, so that a deep value cannot
 * overflow the stack.
 */
import { isDeepStrictEqual } from "node:util";

type Elements = ArrayLike<unknown> & object;

/**
 * Returns whether two values are equal as verl's union compares them: same kind, dtype and shape;
 * NaN equals NaN, and 0 equals -0. Cycles are allowed.
 */
export function deepEqual(left: unknown, right: unknown): boolean {
  const pending: [object, object][] = [];
  const seen = new Map<object, Set<object>>();
  /**
   * Returns false if two values certainly differ; a pair that needs a closer look goes on the list.
   */
  const mayEqual = (a: unknown, b: unknown): boolean => {
    if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return true;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    const met = seen.get(a) ?? new Set();
    // A known pair is either equal or about to fail elsewhere.
    if (met.has(b)) return true;
    seen.set(a, met.add(b));
    pending.push([a, b]);
    return true;
  };

  if (!mayEqual(left, right)) return false;
  for (let pair = pending.pop(); pair !== undefined; pair = pending.pop()) {
    const [a, b] = pair;
    if (isElements(a) && isElements(b)) {
      if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b) || a.length !== b.length)
        return false;
      for (let i = 0; i < a.length; i++) if (!mayEqual(a[i], b[i])) return false;
    } else if (isPlain(a) && isPlain(b)) {
      const keys = Object.keys(a);
      if (keys.length !== Object.keys(b).length) return false;
      for (const key of keys) if (!Object.hasOwn(b, key) || !mayEqual(a[key], b[key])) return false;
    } else if (!isDeepStrictEqual(a, b)) {
      return false;
    }
  }
  return true;
}

function isElements(value: object): value is Elements {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function isPlain(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
