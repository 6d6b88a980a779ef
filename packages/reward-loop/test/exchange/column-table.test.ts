/** Rows as columns and back, and what may travel among others. */

import { describe, expect, test } from "vitest";
import { sendable } from "../../src/exchange/sendable.ts";
import { fromTables, toTables } from "../../src/exchange/column-table.ts";

class Point {
  readonly x = 1;
}

describe("rows come back as they were", () => {
  const shared = { list: [1, { deep: true }] };
  const table: [string, object[]][] = [
    ["none", []],
    ["one", [{ a: 1, b: "text" }]],
    ["alike", [1, 2, 3].map((n) => ({ dataSource: "same", response: `${n}`, n }))],
    ["without keys", [{}, {}]],
    ["with other keys, between those that are alike", [{ a: 1 }, { a: 2 }, { b: 1 }, { a: 3 }]],
    [
      "with the same keys in another order",
      [
        { a: 1, b: 2 },
        { b: 3, a: 4 },
      ],
    ],
    ["that say undefined, and that say nothing", [{ a: undefined }, { a: 1 }, {}]],
    ["of zero and minus zero", [{ a: 0 }, { a: -0 }, { a: 0 }, { inner: { a: -0 } }]],
    ["of NaN", [{ a: Number.NaN }, { a: Number.NaN }]],
    ["with simple objects", [1, 2].map((n) => ({ extra: { acc: n, split: "train" } }))],
    [
      "with objects of other keys",
      [{ extra: { acc: 1 } }, { extra: { pred: 1 } }, { extra: null }],
    ],
    [
      "with simple objects beside others",
      [1, 2].map((n) => ({ before: n, extra: { acc: n, one: "x" }, none: {}, after: `${n}` })),
    ],
    ["with keys that are numbers, and keys that are no good text", [{ 1: "a", "\ud800": 2, b: 3 }]],
    ["with objects inside objects", [{ extra: { usage: { tokens: 1 } } }, { extra: shared }]],
    ["of no plain object", [{ a: 1 }, new Point(), { a: 2 }]],
    ["with one inside", [{ a: new Point() }, { a: { x: 1 } }]],
    ["with a list where others have objects", [{ a: { 0: 1 } }, { a: [1] }]],
  ];
  test.each(table)("%s", (_name, rows) => {
    const back = fromTables(toTables(rows));
    expect(back).toStrictEqual(rows);
    for (const [at, row] of rows.entries()) {
      expect(Object.keys(back[at] ?? {})).toEqual(Object.keys(row));
    }
  });

  test("also one whose key would be a prototype", () => {
    const rows = [JSON.parse('{"__proto__": {"a": 1}}'), { a: JSON.parse('{"__proto__": 1}') }];
    const back = fromTables(toTables(rows as object[]));
    expect(JSON.stringify(back)).toBe(JSON.stringify(rows));
    expect((back[0] as { a?: unknown }).a).toBeUndefined();
  });

  test("with keys that are escaped, one after the other in one place", () => {
    const names = ["\\", "\n", '"', "\ud800", "\\\\"];
    const rows = names.flatMap((one) => names.map((other) => ({ p: 1, [one]: 2, [other]: 3 })));
    expect(fromTables(toTables(rows))).toStrictEqual(rows);
  });

  test("with keys that are long texts", () => {
    const rows = [1, 2].map((n) => ({ ["x".repeat(5000)]: n, inside: { ["y".repeat(5000)]: n } }));
    expect(fromTables(toTables(rows))).toStrictEqual(rows);
  });

  test("with keys of very many kinds", () => {
    const rows = Array.from({ length: 1000 }, (_, index) => ({ [`key ${index}`]: index, n: 1 }));
    expect(fromTables(toTables([...rows, ...rows]))).toStrictEqual([...rows, ...rows]);
  });

  test("each is an object of its own", () => {
    const rows = [1, 2].map((a) => ({ a, inner: { a } }));
    const [one, other] = fromTables(toTables(rows));
    if (one !== undefined) Object.assign(one, { a: 5, more: true }).inner.a = 6;
    expect(other).toStrictEqual({ a: 2, inner: { a: 2 } });
    expect(fromTables(toTables(rows))).toStrictEqual(rows);
  });

  test("what all rows say is said once", () => {
    const rows = Array.from({ length: 100 }, (_, index) => ({ dataSource: "same", index }));
    expect(JSON.stringify(toTables(rows)).match(/same"/g)).toHaveLength(1);
  });
});

describe("what travels with others", () => {
  test("is the same where it is simple", () => {
    const said = { acc: 1, text: "a", none: null, nothing: undefined };
    expect(sendable(said)).toBe(said);
  });

  test("is a copy where there are objects inside, so that a trap goes off once", () => {
    let reads = 0;
    const said = {
      inner: {
        get trap() {
          reads += 1;
          return reads;
        },
      },
      list: [1, [2]],
    };
    const sent = sendable(said);
    expect(JSON.stringify([sent, sent])).toBe(
      '[{"inner":{"trap":1},"list":[1,[2]]},{"inner":{"trap":1},"list":[1,[2]]}]',
    );
    expect(reads).toBe(1);
  });

  const circle: Record<string, unknown> = {};
  circle["self"] = { circle };
  const both: number[] = [];
  const deep = JSON.parse(`${'{"a":'.repeat(20)}1${"}".repeat(20)}`) as Record<string, unknown>;
  const table: [string, Record<string, unknown>][] = [
    ["a function", { callback: () => 1 }],
    ["a function inside", { list: [() => 1] }],
    ["a symbol", { symbol: Symbol("s") }],
    ["an instance of a class", { point: new Point() }],
    ["a buffer", { bytes: new Uint8Array(1) }],
    ["a circle", circle],
    ["the same object twice, which is to stay the same", { both, again: both }],
    ["deep data", deep],
    ["many values", { values: Array(2000).fill(1) }],
    ["a long text", { text: "x".repeat(20_000) }],
    ["a key that would be a prototype", JSON.parse('{"__proto__": 1}')],
  ];
  test.each(table)("is not %s", (_name, said) => {
    expect(sendable(said)).toBeUndefined();
  });
});
