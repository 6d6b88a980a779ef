/**
 * `object.name`, `object[key]` and slices, as jinja2's sandbox has them: an attribute before an
 * item for a dot, an item before an attribute for brackets, and undefined for what is neither.
 * A method that would change a value is undefined, too, as in the sandbox that transformers uses.
 */

import { isList } from "@rayling/reward-manager-registry/values";
import { bound, integer } from "./arguments.ts";
import { equals } from "./compare.ts";
import { fail, unsupported } from "../error.ts";
import { format } from "./format/format-method.ts";
import { slicePoints } from "./slices.ts";
import { isHidden } from "../parse/known-names.ts";
import { repr } from "./text.ts";
import { textMethod } from "./text-methods.ts";
import {
  Callable,
  characters,
  Dict,
  DictView,
  Iter,
  iterate,
  Markup,
  Namespace,
  Opaque,
  Range,
  Tuple,
  typeName,
  Undefined,
} from "./values.ts";
import type { Arguments, Value } from "./values.ts";

/**
 * @param hasItems whether an item of that name will do: a dot of a template; Python's own has
 * none
 */
export function attributeOf(object: Value, name: string, hasItems = true): Value {
  if (object instanceof Undefined) return object.fail();
  const attribute = isHidden(name) ? undefined : ownAttribute(object, name);
  if (attribute !== undefined) return attribute;
  const item = hasItems && !isHidden(name) && object instanceof Dict ? object.get(name) : undefined;
  return item === undefined ? missing(object, name) : item;
}

/** @param hasAttributes whether an attribute of that name will do */
export function itemOf(object: Value, key: Value, hasAttributes = true): Value {
  if (object instanceof Undefined) return object.fail();
  if (object instanceof Opaque) return unsupported(`an item of ${typeName(object)}`);
  const item = ownItem(object, key);
  if (item !== undefined) return item;
  const name = key instanceof Markup ? key.text : key;
  if (!hasAttributes || typeof name !== "string") return missing(object, repr(key));
  const attribute = isHidden(name) ? undefined : ownAttribute(object, name);
  return attribute === undefined ? missing(object, name) : attribute;
}

function missing(object: Value, name: string): Undefined {
  return new Undefined(`${typeName(object)} object has no attribute or item ${name}`);
}

function ownItem(object: Value, key: Value): Value | undefined {
  if (object instanceof Dict) return isHashable(key) ? object.get(key) : undefined;
  if (typeof key !== "bigint" && typeof key !== "boolean") return undefined;
  if (object instanceof Markup) return unsupported("a character of a text that is marked safe");
  const isText = typeof object === "string";
  const isSequence = isText || isList(object) || object instanceof Tuple || object instanceof Range;
  return isSequence ? iterate(object).at(Number(key)) : undefined;
}

function isHashable(key: Value): boolean {
  return !isList(key) && !(key instanceof Dict);
}

/** Returns an attribute of Python's type; undefined where there is none. */
function ownAttribute(object: Value, name: string): Value | undefined {
  if (typeof object === "string") return formatOf(object, name) ?? textMethod(object, name);
  if (object instanceof Markup && textMethod(object.text, name) !== undefined) {
    return unsupported(`${name} of a text that is marked safe`);
  }
  if (object instanceof Dict) return ofDict(object, name);
  if (object instanceof Namespace) return object.values.get(name);
  if (object instanceof Callable) return object.attribute(name);
  if (isList(object) || object instanceof Tuple) return ofSequence(object, name);
  if (object instanceof Range) {
    if (name === "start" || name === "stop" || name === "step") return object[name];
    return ofSequence(object, name);
  }
  const [kind] = [
    object instanceof DictView ? "view" : object instanceof Iter ? "iterator" : typeof object,
  ];
  if (foreign[kind]?.has(name) === true) return unsupported(`${name} of ${typeName(object)}`);
  return object instanceof Opaque ? unsupported(`${name} of ${typeName(object)}`) : undefined;
}

function formatOf(text: string, name: string): Value | undefined {
  const lookUp = { attributeOf, itemOf };
  if (name === "format") return new Callable(name, (given) => format(text, given, lookUp));
  if (name !== "format_map") return undefined;
  return new Callable(name, ({ positional: [values] }) => {
    if (!(values instanceof Dict)) return fail("format_map() wants a mapping");
    const pairs = values.pairs().flatMap(([key, value]) => {
      return typeof key === "string" ? [[key, value] as const] : [];
    });
    return format(text, { positional: [], keyword: new Map(pairs) }, lookUp);
  });
}

const ofNumbers = "as_integer_ratio conjugate imag real".split(" ");
const ofInts = "bit_count bit_length denominator from_bytes numerator to_bytes".split(" ");

/** Attributes that Python's types have besides, and chat templates have no use for. */
const foreign: Readonly<Record<string, ReadonlySet<string>>> = {
  bigint: new Set([...ofNumbers, ...ofInts, "is_integer"]),
  boolean: new Set([...ofNumbers, ...ofInts, "is_integer"]),
  number: new Set([...ofNumbers, "fromhex", "hex", "is_integer"]),
  view: new Set(["isdisjoint", "mapping"]),
  iterator: new Set(["send", "throw", "close"]),
};

const changing: ReadonlySet<string> = new Set(
  "append clear extend insert pop popitem remove reverse setdefault sort update".split(" "),
);

function ofDict(dict: Dict, name: string): Value | undefined {
  const view = (kind: DictView["kind"], items: () => readonly Value[]): Callable =>
    method(name, [], () => new DictView(kind, items()));
  switch (name) {
    case "get":
      return method(
        name,
        ["key", "default"],
        ([key = null, standard = null]) => {
          const value = dict.get(key);
          return value === undefined ? standard : value;
        },
        1,
      );
    case "items":
      return view("dict_items", () => dict.pairs().map((pair) => new Tuple(pair)));
    case "keys":
      return view("dict_keys", () => dict.keys());
    case "values":
      return view("dict_values", () => dict.values());
    case "copy":
      return method(name, [], () => Dict.of(dict.pairs()));
    case "fromkeys":
      return unsupported("fromkeys of a dict");
    case "pop":
    case "popitem":
    case "clear":
    case "setdefault":
    case "update":
      return guarded(name);
    default:
      return undefined;
  }
}

function ofSequence(value: readonly Value[] | Tuple | Range, name: string): Value | undefined {
  const items = isList(value) ? value : value.items;
  if (name === "count") {
    return method(
      name,
      ["value"],
      ([one = null]) => BigInt(items.filter((item) => equals(item, one)).length),
      1,
    );
  }
  if (name === "index") {
    return method(
      name,
      ["value", "start", "stop"],
      ([one = null, start = 0n, stop]) => {
        const [from, to] = slicePoints(items.length, start, stop ?? null, 1);
        const at = items.findIndex(
          (item, place) => place >= from && place < to && equals(item, one),
        );
        return at === -1 ? fail(`${repr(one)} is not in list`) : BigInt(at);
      },
      1,
    );
  }
  if (value instanceof Tuple && value.names.includes(name)) return items[value.names.indexOf(name)];
  if (!isList(value)) return undefined;
  if (name === "copy") return method(name, [], () => [...items]);
  return changing.has(name) && !/^(?:popitem|setdefault|update)$/.test(name)
    ? guarded(name)
    : undefined;
}

function guarded(name: string): Undefined {
  return new Undefined(`the sandbox of chat templates does not let ${name} change a value`);
}

function method(
  name: string,
  parameters: readonly string[],
  work: (values: readonly (Value | undefined)[]) => Value,
  required = 0,
): Callable {
  return new Callable(name, (given: Arguments) => {
    // Python's own take no keywords.
    const [keyword] = given.keyword.keys();
    if (keyword !== undefined) fail(`${name}() takes no keyword arguments`);
    return work(bound(name, given, parameters, required));
  });
}

/** `value[start:stop:step]`. */
export function sliceOf(value: Value, start: Value, stop: Value, step: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const by = step === null ? 1 : integer(step, "slice step");
  if (by === 0) return fail("slice step cannot be zero");
  if (value instanceof Range) return unsupported("a slice of a range");
  const isSliceable = typeof value === "string" || isList(value) || value instanceof Tuple;
  if (value instanceof Markup) return unsupported("a slice of a text that is marked safe");
  if (!isSliceable) return fail(`${typeName(value)} object cannot be sliced`);
  const items = typeof value === "string" ? characters(value) : iterate(value);
  const [from, to] = slicePoints(items.length, start, stop, by);
  const taken: Value[] = [];
  for (let at = from; by > 0 ? at < to : at > to; at += by) taken.push(items[at]!);
  if (typeof value === "string") return taken.filter((one) => typeof one === "string").join("");
  return isList(value) ? taken : new Tuple(taken);
}
