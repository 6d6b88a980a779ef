/** Upper and lower case, and what kind of characters a text has, as Python's str says. */

import { unsupported } from "../error.ts";
import { SPACE } from "./text.ts";
import { characters } from "./values.ts";
import type { Value } from "./values.ts";

export function capitalized(text: string): string {
  const [first = "", ...rest] = characters(text);
  return titleCased(first) + rest.join("").toLowerCase();
}

/** Letters that have a third case, which JavaScript does not know. */
const digraphs = /[ǄǅǆǇǈǉǊǋǌǱǲǳ\u1f80-\u1faf\u1fb3\u1fbc\u1fc3\u1fcc\u1ff3\u1ffc]/;

function titleCased(one: string): string {
  if (digraphs.test(one)) return unsupported(`the title case of ${one}`);
  const [first = "", ...rest] = characters(one.toUpperCase());
  return first + rest.join("").toLowerCase();
}

/** str.title: a letter behind none is upper, the others are lower. */
function titled(text: string): string {
  let isInWord = false;
  return characters(text)
    .map((one) => {
      const result = isInWord ? one.toLowerCase() : titleCased(one);
      isInWord = cased.test(one);
      return result;
    })
    .join("");
}

const cased = /[\p{Lowercase}\p{Uppercase}\p{Lt}]/u;

function swapped(text: string): string {
  return characters(text)
    .map((one) => (/\p{Uppercase}/u.test(one) ? one.toLowerCase() : one.toUpperCase()))
    .join("");
}

/**
 * Full case folding: JavaScript has none; through upper case it is right for all that has a case.
 */
function folded(text: string): string {
  return /^[\0-\x7f]*$/.test(text)
    ? text.toLowerCase()
    : unsupported("casefold of a text that is not ASCII");
}

function all(text: string, pattern: RegExp): boolean {
  return text !== "" && characters(text).every((one) => pattern.test(one));
}

/**
 * Digits that are no decimal ones, and ideographs that are numbers: JavaScript cannot tell which.
 */
const doubtful = /[\p{No}\p{Script=Han}]/u;

function decided(text: string, pattern: RegExp): boolean {
  if (doubtful.test(text)) unsupported("whether a text of such characters is a number");
  return all(text, pattern);
}

function isTitle(text: string): boolean {
  if (digraphs.test(text)) unsupported("istitle of a text with letters of a third case");
  let isInWord = false;
  for (const one of characters(text)) {
    const isUpper = /\p{Uppercase}/u.test(one);
    if (isUpper && isInWord) return false;
    if (!isUpper && cased.test(one) && !isInWord) return false;
    isInWord = cased.test(one);
  }
  return cased.test(text);
}

export const isLower = (text: string): boolean =>
  cased.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
export const isUpper = (text: string): boolean =>
  cased.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);

export const casing: Readonly<Record<string, (text: string) => Value>> = {
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  title: titled,
  capitalize: capitalized,
  swapcase: swapped,
  casefold: folded,
  isupper: isUpper,
  islower: isLower,
  istitle: isTitle,
  isalpha: (text) => all(text, /\p{L}/u),
  isdecimal: (text) => all(text, /\p{Nd}/u),
  isdigit: (text) => decided(text, /\p{Nd}/u),
  isnumeric: (text) => decided(text, /\p{N}/u),
  isalnum: (text) => all(text, /[\p{L}\p{N}]/u),
  isspace: (text) => all(text, new RegExp(`[${SPACE}]`)),
  isascii: (text) => /^[\0-\x7f]*$/.test(text),
};
