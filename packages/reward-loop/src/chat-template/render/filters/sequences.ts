/** Filters of lists, dicts and whatever can be gone over. */

import { binary } from "../../python/arithmetic.ts";
import { bound, integer } from "../../python/arguments.ts";
import { equals, order, sorted } from "../../python/compare.ts";
import { fail, unsupported } from "../../error.ts";
import { toJson } from "../../python/format/json-text.ts";
import { attributeOf } from "../../python/members.ts";
import { str } from "../../python/text.ts";
import {
  characters,
  Dict,
  isTrue,
  Iter,
  iterate,
  itemsOf,
  Markup,
  orUndefined,
  sizeOf,
  Tuple,
  typeName,
  Undefined,
} from "../../python/values.ts";
import type { Value } from "../../python/values.ts";
import { attributeGetter, folded } from "./filter.ts";
import type { Filter, Filters } from "./filter.ts";

const sort: Filter = (value, given, name) => {
  const [reverse = false, sensitive = false, attribute = null] = bound(name, given, [
    "reverse",
    "case_sensitive",
    "attribute",
  ]);
  const paths: readonly Value[] =
    typeof attribute === "string" ? attribute.split(",") : [attribute];
  const getters = paths.map((path) => attributeGetter(path));
  const items = iterate(value);
  const keys = items.map((item) => getters.map((get) => folded(get(item), isTrue(sensitive))));
  return sorted(items, keys, isTrue(reverse));
};

const extreme =
  (sign: 1 | -1): Filter =>
  (value, given, name) => {
    const [sensitive = false, attribute = null] = bound(name, given, [
      "case_sensitive",
      "attribute",
    ]);
    const get = attributeGetter(attribute);
    const key = (item: Value): Value => folded(get(item), isTrue(sensitive));
    const [first, ...rest] = iterate(value);
    if (first === undefined) return new Undefined("No aggregated item, sequence was empty.");
    return rest.reduce(
      (best, item) => (sign * order(key(item), key(best), sign > 0 ? ">" : "<") > 0 ? item : best),
      first,
    );
  };

const unique: Filter = (value, given, name) => {
  const [sensitive = false, attribute = null] = bound(name, given, ["case_sensitive", "attribute"]);
  const get = attributeGetter(attribute);
  function* firsts(): Generator<Value> {
    const seen = new Dict();
    for (const item of iterate(value)) {
      const key = folded(get(item), isTrue(sensitive));
      if (seen.has(key)) continue;
      seen.set(key, null);
      yield item;
    }
  }
  return new Iter(firsts());
};

const groupby: Filter = (value, given, name) => {
  const [attribute = null, standard = null, sensitive = false] = bound(
    name,
    given,
    ["attribute", "default", "case_sensitive"],
    1,
  );
  const get = attributeGetter(attribute, standard);
  const key = (item: Value): Value => folded(get(item), isTrue(sensitive));
  const items = iterate(value);
  const groups: { readonly key: Value; readonly items: Value[] }[] = [];
  for (const item of sorted(items, items.map(key))) {
    const last = groups.at(-1);
    if (last !== undefined && equals(last.key, key(item))) last.items.push(item);
    else groups.push({ key: key(item), items: [item] });
  }
  return groups.map((group) => new Tuple([get(group.items[0]!), group.items], ["grouper", "list"]));
};

const dictsort: Filter = (value, given, name) => {
  const [sensitive = false, by = "key", reverse = false] = bound(name, given, [
    "case_sensitive",
    "by",
    "reverse",
  ]);
  if (by !== "key" && by !== "value") return fail(`You can only sort by either "key" or "value"`);
  if (!(value instanceof Dict)) return fail(`${typeName(value)} has no items to sort`);
  const pairs = value.pairs();
  const keys = pairs.map(([key, item]) => folded(by === "key" ? key : item, isTrue(sensitive)));
  return sorted(
    pairs.map((pair) => new Tuple(pair)),
    keys,
    isTrue(reverse),
  );
};

const batch: Filter = (value, given, name) => {
  const [count = null, fill = null] = bound(name, given, ["linecount", "fill_with"], 1);
  const size = integer(count, name);
  if (size < 1) return unsupported("batches of fewer than one");
  function* batches(): Generator<Value> {
    const items = iterate(value);
    for (let at = 0; at < items.length; at += size) {
      const part = items.slice(at, at + size);
      yield fill === null ? part : [...part, ...Array<Value>(size - part.length).fill(fill)];
    }
  }
  return new Iter(batches());
};

const slice: Filter = (value, given, name) => {
  const [count = null, fill = null] = bound(name, given, ["slices", "fill_with"], 1);
  const slices = integer(count, name);
  if (slices < 1) return unsupported("fewer slices than one");
  function* parts(): Generator<Value> {
    const items = iterate(value);
    const [least, more] = [Math.floor(items.length / slices), items.length % slices];
    let from = 0;
    for (let at = 0; at < slices; at += 1) {
      const part = items.slice(from, from + least + (at < more ? 1 : 0));
      from += part.length;
      yield fill !== null && at >= more ? [...part, fill] : part;
    }
  }
  return new Iter(parts());
};

const map: Filter = (value, { positional, keyword }, _name, apply) => {
  const [filter, ...rest] = positional;
  const attribute = keyword.get("attribute");
  function* mapped(): Generator<Value> {
    // As in jinja2, which looks at the arguments behind that.
    if (!isTrue(value)) return;
    if (filter === undefined) {
      if (attribute === undefined) fail("map requires a filter argument");
      const other = [...keyword.keys()].find((key) => key !== "attribute" && key !== "default");
      if (other !== undefined) fail(`Unexpected keyword argument '${other}'`);
      const get = attributeGetter(attribute ?? null, keyword.get("default") ?? null);
      for (const item of iterate(value)) yield get(item);
      return;
    }
    for (const item of iterate(value)) {
      yield apply.filter(str(filter), item, { positional: rest, keyword });
    }
  }
  return new Iter(mapped());
};

const choosing =
  (isByAttribute: boolean, isRejecting: boolean): Filter =>
  (value, { positional, keyword }, name, apply) => {
    function* chosen(): Generator<Value> {
      if (!isTrue(value)) return;
      const [test, ...rest] = isByAttribute ? positional.slice(1) : positional;
      const [attribute] = positional;
      if (isByAttribute && attribute === undefined)
        fail(`Missing parameter for attribute name of ${name}`);
      const get = attributeGetter(isByAttribute ? (attribute ?? null) : null);
      for (const item of iterate(value)) {
        const tested = get(item);
        const isTaken =
          test === undefined
            ? isTrue(tested)
            : apply.test(str(test), tested, { positional: rest, keyword });
        if (isTaken !== isRejecting) yield item;
      }
    }
    return new Iter(chosen());
  };

const reverse: Filter = (value, given, name) => {
  bound(name, given, []);
  if (typeof value === "string") return characters(value).toReversed().join("");
  if (value instanceof Markup) return unsupported("reverse of a text that is marked safe");
  if (value instanceof Iter) return iterate(value).toReversed();
  return new Iter(iterate(value).toReversed());
};

const standard: Filter = (value, given, name) => {
  const [other = "", boolean = false] = bound(name, given, ["default_value", "boolean"]);
  return value instanceof Undefined || (isTrue(boolean) && !isTrue(value)) ? other : value;
};

const length: Filter = (value, given, name) => {
  bound(name, given, []);
  return BigInt(sizeOf(value) ?? fail(`object of type ${typeName(value)} has no len()`));
};

export const sequenceFilters: Filters = {
  sort,
  min: extreme(-1),
  max: extreme(1),
  unique,
  groupby,
  dictsort,
  batch,
  slice,
  map,
  select: choosing(false, false),
  reject: choosing(false, true),
  selectattr: choosing(true, false),
  rejectattr: choosing(true, true),
  reverse,
  default: standard,
  d: standard,
  length,
  count: length,
  list: (value, given, name) => {
    bound(name, given, []);
    return [...iterate(value)];
  },
  first: (value, given, name) => {
    bound(name, given, []);
    const first = value instanceof Iter ? value.next() : iterate(value)[0];
    return orUndefined(first, "No first item, sequence was empty.");
  },
  last: (value, given, name) => {
    bound(name, given, []);
    if (value instanceof Iter) return fail(`${typeName(value)} object is not reversible`);
    if (value instanceof Markup) return unsupported("last of a text that is marked safe");
    const items = itemsOf(value) ?? fail(`${typeName(value)} object is not reversible`);
    return orUndefined(items.at(-1), "No last item, sequence was empty.");
  },
  items: (value, given, name) => {
    bound(name, given, []);
    function* pairs(): Generator<Value> {
      if (value instanceof Undefined) return;
      if (!(value instanceof Dict)) fail("Can only get item pairs from a mapping.");
      for (const pair of value.pairs()) yield new Tuple(pair);
    }
    return new Iter(pairs());
  },
  attr: (value, given, name) => {
    const [attribute = null] = bound(name, given, ["name"], 1);
    return attributeOf(value, str(attribute), false);
  },
  sum: (value, given, name) => {
    const [attribute = null, start = 0n] = bound(name, given, ["attribute", "start"]);
    if (typeof start === "string") return fail("sum() can't sum strings");
    const get = attributeGetter(attribute);
    return iterate(value).reduce<Value>((total, item) => binary("+", total, get(item)), start);
  },
  tojson: (value, given) => toJson(value, given),
};
