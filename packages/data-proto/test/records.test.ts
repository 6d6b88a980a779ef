/**
 * Records out of JSON Lines, arrays, Parquet, packed or not: what they say and where they stand,
 * or what the file is instead.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { readJsonl, readParquet, readRecords, writeParquet } from "@rayling/data-proto";
import type { ReadRecordsOptions } from "@rayling/data-proto";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-records-"));
  onTestFinished(() => rm(folder, { recursive: true }));
});

async function records(
  name: string,
  content: string | Uint8Array,
  options?: ReadRecordsOptions,
): Promise<unknown[]> {
  const path = join(folder, name);
  await writeFile(path, content);
  return Array.fromAsync(readRecords(path, options));
}

const lines = '{"a":1}\n\n{"a":2}\n';
const array = '[\n {"a": 1},\n null\n]\n';

describe("what is read", () => {
  test("lines have their numbers, items and rows theirs", async () => {
    const ofLines = [
      { line: 1, value: { a: 1 } },
      { line: 3, value: { a: 2 } },
    ];
    const ofItems = [
      { row: 0, value: { a: 1 } },
      { row: 1, value: null },
    ];
    expect(await records("x.jsonl", lines)).toEqual(ofLines);
    expect(await records("x.jsonl.gz", gzipSync(lines))).toEqual(ofLines);
    expect(await records("x.json", array)).toEqual(ofItems);
    expect(await records("x.jsonl", `\ufeff${array}`)).toEqual(ofItems);
    expect(await records("x.json.gz", gzipSync(array))).toEqual(ofItems);
    const path = join(folder, "x.parquet");
    await writeParquet(path, [{ a: 1 }, { a: null }], { columns: { a: "double" } });
    expect(await Array.fromAsync(readRecords(path))).toEqual([
      { row: 0, value: { a: 1 } },
      { row: 1, value: { a: null } },
    ]);
  });

  test("a packed file of several members and of many chunks is whole", async () => {
    const half = Array.from({ length: 30_000 }, (_, a) => JSON.stringify({ a, b: "x".repeat(40) }));
    const members = [half, half].map((part) => gzipSync(`${part.join("\n")}\n`));
    expect(await records("big.jsonl.gz", Buffer.concat(members))).toHaveLength(60_000);
  });

  test("whole numbers that a double cannot hold are bigints, as in Parquet", async () => {
    const text = `{"id": 9007199254740993, "less": -12345678901234567890, "safe": 9007199254740991, "float": 9007199254740993.0, "text": "9007199254740993", "part": 0.1234567890123456}`;
    const value = {
      id: 9007199254740993n,
      less: -12345678901234567890n,
      safe: 9007199254740991,
      float: 9007199254740992,
      text: "9007199254740993",
      part: 0.1234567890123456,
    };
    expect(await records("x.jsonl", text)).toEqual([{ line: 1, value }]);
    expect(await records("x.json", `[${text}]`)).toEqual([{ row: 0, value }]);
    const nan = await records("x.jsonl", `[NaN, 9007199254740993]`, { allowNan: true });
    expect(nan).toEqual([
      { row: 0, value: Number.NaN },
      { row: 1, value: 9007199254740993n },
    ]);
  });

  test("a line of 20 MB that is wrong is told as such", async () => {
    const long = `{"a": "${"x".repeat(20_000_000)}", "b": NaN}`;
    const found = await records("x.jsonl", long, { allowNan: true });
    expect(found).toMatchObject([{ value: { b: Number.NaN } }]);
    await expect(records("x.jsonl", long)).rejects.toThrow(
      "x.jsonl:1: the line is not valid JSON: NaN",
    );
    await expect(records("x.jsonl", long.replace("NaN", ""))).rejects.toThrow("not valid JSON");
  });

  test("NaN and Infinity are read where they are asked for, and only as numbers", async () => {
    const text = '{"a": NaN, "b": [-Infinity, Infinity], "c": "NaN \\" Infinity"}';
    const value = { a: Number.NaN, b: [-Infinity, Infinity], c: 'NaN " Infinity' };
    expect(await records("x.jsonl", text, { allowNan: true })).toEqual([{ line: 1, value }]);
    expect(await records("x.json", `[${text}]`, { allowNan: true })).toEqual([{ row: 0, value }]);
    await expect(records("x.jsonl", text)).rejects.toThrow(/x\.jsonl:1: .*NaN is no JSON/);
    await expect(records("x.jsonl", '{"a": NaNs}', { allowNan: true })).rejects.toThrow(
      /x\.jsonl:1/,
    );
  });

  test("a key called __proto__ is one", async () => {
    for (const number of ["NaN", "9007199254740993", "[9007199254740993]"]) {
      const text = `{"__proto__": ${number}}`;
      const [record] = await records("x.jsonl", text, { allowNan: true });
      expect(Object.keys((record as { readonly value: object }).value)).toEqual(["__proto__"]);
    }
  });

  // With a reviver JSON.parse goes down by the stack, and takes up to 140 times as long.
  test("a number that a double cannot hold changes nothing in what else can be read", async () => {
    const depth = 100_000;
    const text = `{"id": 9007199254740993, "deep": ${"[".repeat(depth)}NaN${"]".repeat(depth)}}`;
    const [record] = await records("x.jsonl", text, { allowNan: true });
    let { id, deep } = (record as { readonly value: { id: unknown; deep: unknown } }).value;
    expect(id).toBe(9007199254740993n);
    for (let left = depth; left > 0; left--) [deep] = deep as unknown[];
    expect(deep).toBeNaN();
  });

  test.each([
    ['["9007199254740993", 9007199254740993]', ["9007199254740993", 9007199254740993n]],
    [String.raw`["\\", 9007199254740993, "\""]`, ["\\", 9007199254740993n, '"']],
    [String.raw`["\"9007199254740993, ", 1]`, ['"9007199254740993, ', 1]],
    [String.raw`["\\\"NaN\\", -Infinity]`, ['\\"NaN\\', Number.NEGATIVE_INFINITY]],
    ["[1e-1234567890123456, 1.5e+1234567890123456]", [0, Number.POSITIVE_INFINITY]],
    ["[9007199254740992.0, 1801439850948198400e-2]", [2 ** 53, 2 ** 54]],
    [
      '{"2": 9007199254740993, "1": NaN, "2": 3, "1": 9007199254740993}',
      { 1: 2n ** 53n + 1n, 2: 3 },
    ],
    ["9007199254740993", 9007199254740993n],
  ])("%s has its numbers where they stand", async (text, value) => {
    const found = await records("x.jsonl", `{"v": ${text}}`, { allowNan: true });
    expect(found).toEqual([{ line: 1, value: { v: value } }]);
  });

  test.each([
    ['{"a": NaN, "b" 1}', /position 15 \(line 1 column 16\)/],
    ['{"a": 9007199254740993, "b" 1}', /position 28 \(line 1 column 29\)/],
    ["{NaN: 1}", /x\.jsonl:1: the line is not valid JSON/],
    ["{9007199254740993: 1}", /x\.jsonl:1: the line is not valid JSON/],
    ['{"a": -NaN}', /x\.jsonl:1: the line is not valid JSON/],
    ['{"a": 09007199254740993}', /x\.jsonl:1: the line is not valid JSON/],
  ])("%s is no JSON, which is told with its place", async (text, message) => {
    await expect(records("x.jsonl", text, { allowNan: true })).rejects.toThrow(message);
  });
});

describe("what is not, is said", () => {
  test.each([
    ["empty.jsonl", "", "it is empty"],
    ["x.json", "[]", "it is empty"],
    ["blank.jsonl", "\n \n", "it is empty"],
    ["empty.jsonl.gz", gzipSync(""), "it is empty"],
    ["x.jsonl", gzipSync(lines), /compressed by gzip.*ends in \.gz/],
    ["x.jsonl", Buffer.from(`\ufeff${lines}`, "utf16le"), /UTF-16/],
    ["x.jsonl", Buffer.from(lines, "utf16le"), /UTF-16/],
    ["x.jsonl", Buffer.from(lines, "utf16le").swap16(), /UTF-16/],
    ["x.jsonl", "PAR1 and more", /Parquet/],
    ["x.jsonl.gz", lines, /gzip cannot be unpacked/],
    ["x.jsonl.gz", gzipSync(lines).subarray(0, -9), /gzip cannot be unpacked/],
    ["x.json", '[{"a":1},]', /not one JSON array/],
    ["x.json", "[1]\n[2]\n", /not one JSON array/],
    ["x.json", Buffer.from([0x5b, 0xff, 0x5d]), /not UTF-8/],
    ["x.json", '{"a":\n1}', /line is not valid JSON/],
  ])("%s %s", async (name, content, reason) => {
    await expect(records(name, content)).rejects.toMatchObject({
      name: "JsonlError",
      code: "JSONL_MALFORMED",
      reason: typeof reason === "string" ? reason : expect.stringMatching(reason),
    });
  });

  test.each([
    [{ allowNaN: true }, "readRecords", () => readRecords("x.json", { allowNaN: true } as never)],
    [{ sgnal: 1 }, "readJsonl", () => readJsonl("x.jsonl", { sgnal: 1 } as never)],
    [{ column: [] }, "readParquet", () => readParquet("x.parquet", { column: [] } as never)],
  ])("%j is no option of %s", async (options, where, read) => {
    const [key = ""] = Object.keys(options);
    await expect(Array.fromAsync<unknown>(read())).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      key,
      message: expect.stringContaining(`${where} has no option "${key}"; it has `),
    });
  });

  test("an empty log is an empty log", async () => {
    await writeFile(join(folder, "log.jsonl"), "");
    expect(await Array.fromAsync(readJsonl(join(folder, "log.jsonl")))).toEqual([]);
  });

  test("leaving early, and an abort, close a packed file", async () => {
    const path = join(folder, "x.jsonl.gz");
    await writeFile(path, gzipSync(lines.repeat(10)));
    for await (const { line } of readRecords(path)) if (line === 1) break;
    const stop = new AbortController();
    const reading = (async () => {
      for await (const { value } of readRecords(path, { signal: stop.signal })) {
        expect(value).toEqual({ a: 1 });
        stop.abort(new Error("enough"));
      }
    })();
    await expect(reading).rejects.toThrow("enough");
  });
});
