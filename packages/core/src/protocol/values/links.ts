/**
 * Closes cycles through composed objects. An array with own properties, or an error, that contains
 * itself does not exist yet when its inner mention is read. A stand-in takes its place until all
 * parts are read; then the real object replaces it.
 *
 * msgpackr links plain objects itself. Nothing recurses here, because a peer may send chains of any
 * length.
 */
import { RaySystemError } from "../../shared/errors.ts";
import { isError } from "./kinds.ts";

class StandIn {
  readonly id: unknown;
  constructor(id: unknown) {
    this.id = id;
  }
}

export class Links {
  readonly #made: Map<unknown, unknown> = new Map();
  #isOpen = false;

  /** Records the object of an id. */
  note<Value>(id: unknown, value: Value): Value {
    this.#made.set(id, value);
    return value;
  }

  /** Returns a placeholder for an object that does not exist yet. */
  standIn(id: unknown): object {
    this.#isOpen = true;
    return new StandIn(id);
  }

  /**
   * Replaces the stand-ins by their objects.
   *
   * @throws RaySystemError when an object was never made
   */
  join<Value>(root: Value): Value {
    if (!this.#isOpen) return root;
    const seen = new Set<object>();
    const left: object[] = [];
    const real = (value: unknown): unknown => {
      if (!(value instanceof StandIn)) {
        if (typeof value === "object" && value !== null && !seen.has(value)) {
          seen.add(value);
          left.push(value);
        }
        return value;
      }
      if (!this.#made.has(value.id)) {
        throw new RaySystemError(`part ${String(value.id)} of a value did not arrive`);
      }
      return this.#made.get(value.id);
    };
    const joined = real(root) as Value;
    for (let next = left.pop(); next !== undefined; next = left.pop()) joinParts(next, real);
    return joined;
  }
}

function joinParts(container: object, real: (value: unknown) => unknown): void {
  if (container instanceof Map) return joinMap(container, real);
  if (container instanceof Set) {
    const members: readonly unknown[] = [...container];
    const joined = members.map(real);
    if (!joined.some((one, index) => one !== members[index])) return;
    container.clear();
    for (const one of joined) container.add(one);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(container);
  const hasParts = Array.isArray(container) || prototype === Object.prototype;
  if (!hasParts && !isError(container)) return;
  const keys = hasParts ? Object.keys(container) : Object.getOwnPropertyNames(container);
  for (const key of keys) {
    const property = Object.getOwnPropertyDescriptor(container, key);
    if (property === undefined || !("value" in property)) continue;
    const value: unknown = real(property.value);
    if (value !== property.value) Object.defineProperty(container, key, { ...property, value });
  }
}

function joinMap(map: Map<unknown, unknown>, real: (value: unknown) => unknown): void {
  const entries = [...map];
  const joined = entries.map(([key, value]) => [real(key), real(value)] as const);
  if (
    !joined.some(
      ([key, value], index) => key !== entries[index]?.[0] || value !== entries[index]?.[1],
    )
  )
    return;
  map.clear();
  for (const [key, value] of joined) map.set(key, value);
}
