/** What a function declares is the same, whether the parser had to be loaded for it or not. */

import { expect, test } from "vitest";
import { parametersOf } from "../src/calling/parameters.ts";

type AnyFunction = (...args: never) => unknown;

function made(text: string): AnyFunction {
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- source texts are what is tested
  return new Function(`return (${text});`)() as AnyFunction;
}

test.each([
  "(§) => 1",
  "function (§) {}",
  "async function named(§) {}",
  "function* (§) {}",
  "(§{ a, b }) => a",
  "async (§{a,b,}) => a",
  "async(§{ a }) => a",
  "function score(§{ a: x, $b, _c }) { return x; }",
  "(§{ a\n  ,\n b }          )         => a",
  "function (§{ a } ,) { return a; }",
  "({ score(§{ a }) { return a; } }).score",
  "({ async score(§{ a }) { return a; } }).score",
  "(class { static score(§{ a }) { return a; } }).score",
  "({ async(§{ a }) {} }).async",
  "({ function(§{ a }) {} }).function",
  "({ get(§{ a }) {} }).get",
  "(class { constructor(§{ a }) {} })",
  "({ 'some name'(§{ a }) {} })['some name']",
  "function (§) { return arguments[0]; }",
  "function (§{ a }) { return () => arguments; }",
  "(§{ a }) => 'arguments'",
  "(§{ a = 1 }) => a",
  "(§{ a, ...rest }) => a",
  "(§{ a: { b } }) => b",
  "(§{ [`a`]: b }) => b",
  "(§{ 'a': b }) => b",
  "(§{ a }, b) => a",
  "(§{ a } = {}) => a",
  "(§{ ä }) => 1",
  "(§...rest) => rest",
  "(§[a]) => a",
  "(§x) => x.a",
])("%s", async (text) => {
  const plain = await parametersOf(made(text.replace("§", "")));
  expect(plain).toBeDefined();
  // A comment is for the parser to read.
  expect(await parametersOf(made(text.replace("§", "/**/")))).toEqual(plain);
});

test.each([
  ["a bound one", made("({ a }) => a").bind(undefined)],
  ["a proxy", new Proxy(made("({ a }) => a"), {})],
  ["native code", Math.max],
])("nothing is known of %s", async (_, callable) => {
  expect(await parametersOf(callable)).toBeUndefined();
});
