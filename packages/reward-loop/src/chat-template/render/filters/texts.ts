/** Filters of texts. */

import { binary } from "../../python/arithmetic.ts";
import { bound, integer } from "../../python/arguments.ts";
import { capitalized } from "../../python/casing.ts";
import { fail, unsupported } from "../../error.ts";
import { printf } from "../../python/format/printf.ts";
import { markupOf, SPACE, str } from "../../python/text.ts";
import { centered, replaced, split, splitLines, stripped } from "../../python/text-methods.ts";
import {
  characters,
  Dict,
  isTrue,
  Iter,
  iterate,
  Markup,
  sizeOf,
  Tuple,
  typeName,
  Undefined,
} from "../../python/values.ts";
import type { Value } from "../../python/values.ts";
import type { Filter, Filters } from "./filter.ts";

const plain =
  (work: (text: string) => Value): Filter =>
  (value, given, name) => {
    bound(name, given, []);
    return work(unmarked(value, name));
  };

/** Returns a text; a text that is marked safe would stay marked. */
function unmarked(value: Value, name: string): string {
  return value instanceof Markup
    ? unsupported(`${name} of a text that is marked safe`)
    : str(value);
}

const wordStart = new RegExp(`([-${SPACE}({[<]+)`, "u");

function titled(text: string): string {
  return text
    .split(wordStart)
    .map((part) => {
      const [first = "", ...rest] = characters(part);
      return first.toUpperCase() + rest.join("").toLowerCase();
    })
    .join("");
}

const indent: Filter = (value, given, name) => {
  const [width = 4n, first = false, blank = false] = bound(name, given, [
    "width",
    "first",
    "blank",
  ]);
  if (typeof value !== "string") {
    if (value instanceof Undefined) return value.fail();
    return value instanceof Markup
      ? unmarked(value, name)
      : fail(`cannot indent ${typeName(value)}`);
  }
  const indentation = typeof width === "string" ? width : str(binary("*", " ", width));
  const [head = "", ...rest] = splitLines(`${value}\n`);
  const tail = rest.map((line) => (line !== "" || isTrue(blank) ? indentation + line : line));
  return (isTrue(first) ? indentation : "") + [head, ...tail].join("\n");
};

const truncate: Filter = (value, given, name) => {
  const [length = 255n, kill = false, end = "...", leeway = null] = bound(name, given, [
    "length",
    "killwords",
    "end",
    "leeway",
  ]);
  const [most, tail] = [integer(length, name), str(end)];
  const slack = leeway === null ? 5 : integer(leeway, name);
  const room = most - characters(tail).length;
  if (room < 0) return fail(`expected length >= ${characters(tail).length}, got ${most}`);
  if (slack < 0) return fail(`expected leeway >= 0, got ${slack}`);
  const size = sizeOf(value) ?? fail(`object of type ${typeName(value)} has no len()`);
  if (size <= most + slack) return value;
  if (typeof value !== "string") return fail(`cannot truncate ${typeName(value)}`);
  const cut = characters(value).slice(0, room).join("");
  return (isTrue(kill) ? cut : split(cut, " ", 1, true)[0]!) + tail;
};

const format: Filter = (value, { positional, keyword }, name) => {
  if (positional.length > 0 && keyword.size > 0) {
    return fail("format: positional and keyword arguments at the same time");
  }
  const values = keyword.size > 0 ? Dict.of(keyword) : new Tuple(positional);
  return printf(unmarked(value, name), values);
};

const escape: Filter = (value, given, name) => {
  bound(name, given, []);
  return markupOf(value);
};

const urlencode: Filter = (value, given, name) => {
  bound(name, given, []);
  const text = (one: Value): string => (typeof one === "string" ? one : str(one));
  if (typeof value === "string") return quotedUrl(value).replaceAll("%2F", "/");
  if (value instanceof Markup) return unmarked(value, name);
  if (!(value instanceof Dict)) {
    const isIterable = value instanceof Iter || sizeOf(value) !== undefined;
    return isIterable ? unsupported(`urlencode of ${typeName(value)}`) : quotedUrl(text(value));
  }
  const pairs = value.pairs();
  const query = (one: Value): string => quotedUrl(text(one)).replaceAll("%20", "+");
  return pairs.map(([key, one]) => `${query(key)}=${query(one)}`).join("&");
};

function quotedUrl(text: string): string {
  if (!text.isWellFormed()) return unsupported("half of a character in a URL");
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export const textFilters: Filters = {
  upper: plain((text) => text.toUpperCase()),
  lower: plain((text) => text.toLowerCase()),
  capitalize: plain(capitalized),
  title: plain(titled),
  wordcount: plain((text) => BigInt(text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)),
  string: (value, given, name) => {
    bound(name, given, []);
    return value instanceof Markup ? value : str(value);
  },
  trim: (value, given, name) => {
    const [chars = null] = bound(name, given, ["chars"]);
    if (chars !== null && typeof chars !== "string") return fail("strip arg must be None or str");
    return stripped(unmarked(value, name), chars ?? undefined);
  },
  center: (value, given, name) => {
    const [width = 80n] = bound(name, given, ["width"]);
    return centered(unmarked(value, name), integer(width, name));
  },
  replace: (value, given, name) => {
    const [old = null, by = null, count = null] = bound(name, given, ["old", "new", "count"], 2);
    const most = count === null ? -1 : integer(count, name);
    return replaced(str(value), str(old), str(by), most);
  },
  join: (value, given, name, apply) => {
    const [between = "", attribute = null] = bound(name, given, ["d", "attribute"]);
    const items =
      attribute === null
        ? value
        : apply.filter("map", value, {
            positional: [],
            keyword: new Map([["attribute", attribute]]),
          });
    return iterate(items).map(str).join(str(between));
  },
  indent,
  truncate,
  format,
  escape,
  e: escape,
  forceescape: (value, given, name, apply) =>
    apply.filter("escape", value instanceof Markup ? value.text : value, given),
  safe: (value, given, name) => {
    bound(name, given, []);
    return value instanceof Markup ? value : new Markup(str(value));
  },
  urlencode,
};
