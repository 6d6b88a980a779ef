/**
 * The functions that a template has by itself: jinja2's, and those that transformers adds or
 * replaces.
 */

import { bound, integer } from "../python/arguments.ts";
import { ChatTemplateError, fail, unsupported } from "../error.ts";
import { strftime } from "../python/format/strftime.ts";
import { str } from "../python/text.ts";
import {
  Callable,
  Dict,
  iterate,
  Namespace,
  Range,
  typeName,
  Undefined,
} from "../python/values.ts";
import type { Arguments, Value } from "../python/values.ts";

/** jinja2's sandbox: longer ranges fail. */
const LONGEST_RANGE = 100_000n;

/** @param now the local time of strftime_now */
export function globalsOf(now: () => Date): ReadonlyMap<string, Value> {
  const functions: Readonly<Record<string, (given: Arguments) => Value>> = {
    range: rangeOf,
    dict: dictOf,
    namespace: namespaceOf,
    cycler: cyclerOf,
    joiner: joinerOf,
    lipsum: () => unsupported("lipsum"),
    raise_exception: (given) => {
      const [message = null] = bound("raise_exception", given, ["message"], 1);
      throw new ChatTemplateError("CHAT_TEMPLATE_REFUSED", str(message));
    },
    strftime_now: (given) => {
      const [format = null] = bound("strftime_now", given, ["format"], 1);
      if (typeof format !== "string")
        return fail(`strftime() wants a text, not ${typeName(format)}`);
      return strftime(now(), format);
    },
  };
  return new Map(Object.entries(functions).map(([name, call]) => [name, new Callable(name, call)]));
}

function rangeOf({ positional, keyword }: Arguments): Value {
  const given = positional.map((value) => BigInt(integer(value, "range")));
  if (keyword.size > 0) return fail("range() takes no keyword arguments");
  const [first = 0n, second, step = 1n] = given;
  if (given.length === 0 || given.length > 3)
    return fail(`range expected 1 to 3 arguments, got ${given.length}`);
  if (step === 0n) return fail("range() arg 3 must not be zero");
  const [start, stop] = second === undefined ? [0n, first] : [first, second];
  const size = (stop - start + step - (step > 0n ? 1n : -1n)) / step;
  if (size > LONGEST_RANGE)
    return fail(`Range too big. The sandbox blocks ranges larger than ${LONGEST_RANGE}.`);
  return new Range(start, stop, step);
}

function dictOf({ positional, keyword }: Arguments): Dict {
  const [source, more] = positional;
  if (more !== undefined) return fail(`dict expected at most 1 argument, got ${positional.length}`);
  const dict = source instanceof Dict ? Dict.of(source.pairs()) : new Dict();
  if (source !== undefined && !(source instanceof Dict)) {
    for (const pair of iterate(source)) {
      const [key, value, third] = iterate(pair);
      if (key === undefined || value === undefined || third !== undefined) {
        return fail("dictionary update sequence element must have length 2");
      }
      dict.set(key, value);
    }
  }
  for (const [key, value] of keyword) dict.set(key, value);
  return dict;
}

function namespaceOf(given: Arguments): Namespace {
  const values = new Map<string, Value>();
  for (const [key, value] of dictOf(given).pairs()) {
    if (typeof key !== "string") return unsupported("a namespace with keys that are no texts");
    values.set(checkedName(key), value);
  }
  return new Namespace(values);
}

/** Throws for a name that transformers' namespaces refuse. */
export function checkedName(name: string): string {
  if (!name.startsWith("_")) return name;
  return fail(
    `chat templates cannot store underscore-prefixed attributes on a namespace: '${name}'`,
  );
}

function cyclerOf({ positional: items }: Arguments): Value {
  if (items.length === 0) return fail("at least one item has to be provided");
  let at = 0;
  const step = (): Value => {
    const item = items[at]!;
    at = (at + 1) % items.length;
    return item;
  };
  const reset = (): Value => {
    at = 0;
    return null;
  };
  const uncallable = (): Value => fail("'Cycler' object is not callable");
  return new Callable("cycler", uncallable, (name) => {
    if (name === "next") return new Callable(name, step);
    if (name === "reset") return new Callable(name, reset);
    if (name === "items" || name === "pos") return unsupported(`${name} of a cycler`);
    return name === "current" ? items[at] : undefined;
  });
}

function joinerOf(given: Arguments): Value {
  const [separator = ", "] = bound("joiner", given, ["sep"]);
  let isUsed = false;
  return new Callable("joiner", () => {
    if (isUsed) return separator;
    isUsed = true;
    return "";
  });
}

/** The value of a name that is not known. */
export function unknown(name: string): Value {
  if (name === "self") return unsupported("self");
  return new Undefined(`'${name}' is undefined`);
}
