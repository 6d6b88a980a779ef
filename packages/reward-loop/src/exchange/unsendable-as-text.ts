/**
 * Puts texts in place of the parts of a value that cannot travel (functions, promises, instances of
 * most classes): one part costs one part, and no score that was paid for.
 */

import { inspect } from "node:util";
import * as ray from "@rayling/core";
import { isRecord } from "@rayling/reward-manager-registry/values";
import { isPlain } from "./column-table.ts";

/** The greatest depth that is kept. */
const deepest = 64;

/** A value that travels. */
export interface Travelling {
  readonly value: Readonly<Record<string, unknown>>;
  /** Places of what is a text now, as `extra.callback`. */
  readonly asText: readonly string[];
}

/** @param name what the value is called in places */
export function asTexts(value: Readonly<Record<string, unknown>>, name: string): Travelling {
  const asText: string[] = [];
  const above = new Set<object>();

  function at(place: string, one: unknown): unknown {
    if (travels(one)) return one;
    const isParent = typeof one === "object" && one !== null && !above.has(one);
    if (isParent && above.size < deepest) {
      above.add(one);
      try {
        const isList = Array.isArray(one) && Object.getPrototypeOf(one) === Array.prototype;
        if (isList) return one.map((item, n) => at(`${place}[${n}]`, item));
        if (isPlain(one)) return fieldsOf(place, one);
      } catch {
        // A proxy that throws.
      } finally {
        above.delete(one);
      }
    }
    asText.push(place);
    return textOf(one);
  }

  function fieldsOf(place: string, one: object): Record<string, unknown> {
    const fields: Record<string, unknown> = {};
    for (const key of Object.keys(one)) {
      const field = at(`${place}.${key}`, read(one, key));
      // A field may be called __proto__.
      Object.defineProperty(fields, key, { value: field, ...ordinary });
    }
    return fields;
  }

  const travelling = at(name, value);
  return { value: isRecord(travelling) ? travelling : {}, asText };
}

const ordinary = { enumerable: true, configurable: true, writable: true } as const;

function travels(value: unknown): boolean {
  try {
    return ray.inspectSerializability(value) === undefined;
  } catch {
    // A proxy that throws where nobody expects it.
    return false;
  }
}

/** A getter that throws has its error as value. */
function read(from: object, key: string): unknown {
  try {
    return Reflect.get(from, key);
  } catch (error) {
    return error;
  }
}

/** Returns a value as Node prints it. */
export function textOf(value: unknown): string {
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  try {
    return inspect(value, { depth: 4, breakLength: Infinity, getters: false });
  } catch {
    return "a value that cannot be read";
  }
}
