/**
 * Replaces values that JSON cannot carry by texts, so that the rest of a record is kept: numbers
 * that are not finite ("NaN", "-Infinity"), bigints as their digits, and values without a form in
 * JSON (maps, errors, circular references) as Node prints them.
 */

import { itemsIn } from "@rayling/reward-manager-registry/values";
import { textOf } from "../exchange/unsendable-as-text.ts";
import { isPlain } from "../exchange/column-table.ts";

/** A value that JSON can carry. */
export interface Carriable {
  /** The value, with texts in place of what JSON cannot carry. */
  readonly value: unknown;
  /** Places of what is a text now, as `$.extra.logprob`. */
  readonly asText: readonly string[];
}

/** The greatest depth that is kept. */
const deepest = 64;

/**
 * Replaces what JSON cannot carry by texts: numbers that are not finite, bigints, maps, errors,
 * cycles.
 */
export function carriable(value: unknown): Carriable {
  const asText: string[] = [];
  const above = new Set<object>();

  function at(place: string, key: string, one: unknown): unknown {
    const isNumber = typeof one === "number" || typeof one === "bigint";
    if (!isNumber && (typeof one !== "object" || one === null)) return one;
    const text = (): string => {
      asText.push(place);
      return textOf(one);
    };
    if (isNumber) return Number.isFinite(one) ? one : text();
    if (above.has(one) || above.size >= deepest) return text();
    above.add(one);
    try {
      const list = listOf(one);
      if (list !== undefined) return list.map((inner, n) => at(`${place}.${n}`, String(n), inner));
      const toJSON = "toJSON" in one ? one.toJSON : undefined;
      if (typeof toJSON === "function") {
        const said: unknown = toJSON.call(one, key);
        return said === null || said === one ? text() : at(place, key, said);
      }
      if (!isPlain(one) && Object.keys(one).length === 0) return text();
      if (one instanceof Error) return text();
      const entries = Object.entries(one);
      return Object.fromEntries(
        entries.map(([name, inner]) => [name, at(`${place}.${name}`, name, inner)]),
      );
    } catch {
      // A getter of the user's, or a toJSON, throws.
      return text();
    } finally {
      above.delete(one);
    }
  }

  return { value: at("$", "", value), asText };
}

function listOf(value: object): readonly unknown[] | undefined {
  return itemsIn(value);
}
