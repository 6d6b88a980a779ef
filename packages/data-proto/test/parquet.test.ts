/** Parquet: files that pyarrow wrote (fixtures/parquet.py) are read as JSON would have them, and what is written here is read back. */

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { parquetMetadata } from "hyparquet";
import { parquetWriteBuffer } from "hyparquet-writer";
import { ParquetError, parquetInfo, readParquet, writeParquet } from "@rayling/data-proto";
import type { ParquetRecord, ReadParquetOptions } from "@rayling/data-proto";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { sized } from "../../../test/fixtures/suite.ts";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`./fixtures/${name}.parquet`, import.meta.url));

let folder = "";
/** One block of LZ4 that is all literals, behind Hadoop's two sizes. */
function inHadoopFrame(bytes: Uint8Array): Uint8Array {
  const more: number[] = [];
  for (let left = bytes.length - 15; left >= 0; left -= 255) more.push(Math.min(left, 255));
  const block = Buffer.concat([Buffer.from([Math.min(bytes.length, 15) << 4, ...more]), bytes]);
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32BE(bytes.length, 0);
  sizes.writeUInt32BE(block.length, 4);
  return Buffer.concat([sizes, block]);
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-parquet-"));
  onTestFinished(() => rm(folder, { recursive: true }));
});

async function rowsOf(path: string, options?: ReadParquetOptions): Promise<ParquetRecord[]> {
  return Array.fromAsync(readParquet(path, options));
}

async function valuesOf(path: string, options?: ReadParquetOptions): Promise<unknown[]> {
  return (await rowsOf(path, options)).map(({ value }) => value);
}

describe("reading", () => {
  test("verl's columns come as JSON would have them: nested, int64 as numbers, missing as null", async () => {
    const rows = await rowsOf(fixture("verl"));
    expect(rows.map(({ row }) => row)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(rows[3]?.value).toEqual({
      data_source: "openai/gsm8k",
      prompt: [
        { role: "system", content: "Answer." },
        { role: "user", content: "What is 3 + 3? é✓" },
      ],
      ability: "math",
      reward_model: { style: "rule", ground_truth: "6" },
      extra_info: {
        split: "train",
        index: 3,
        answer: null,
        question: "What is 3 + 3?",
        need_tools_kwargs: false,
        tools_kwargs: { calc: { create_kwargs: { ground_truth: "6" } } },
      },
      level: 0.75,
      tags: ["a", "b", null],
      image: Uint8Array.of(255, 0, 3),
    });
    const extra = rows.map(({ value }) => value["extra_info"] as Record<string, unknown>);
    expect(extra.map((one) => one["tools_kwargs"] === null)).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((index) => index === 4),
    );
    expect(rows.map(({ value }) => value["level"])).toEqual([0, 0.25, 0.5, 0.75, 1, null, 1.5]);
    expect(rows.map(({ value }) => value["tags"]).slice(0, 3)).toEqual([[], null, ["a", "b"]]);
  });

  test("its footer tells what there is", async () => {
    expect(await parquetInfo(fixture("verl"))).toMatchObject({
      rows: 7,
      rowGroups: [3, 3, 1],
      columns: expect.arrayContaining(["prompt", "extra_info"]) as string[],
    });
  });

  test.each([
    [{ rowStart: 2, rowEnd: 5 }, [2, 3, 4]],
    [{ rowStart: 6 }, [6]],
    [{ rowEnd: 1 }, [0]],
    [{ rowStart: 3, rowEnd: 3 }, []],
    [{ rowStart: 100 }, []],
  ])("rows %j are these alone, with their numbers", async (options, expected) => {
    const rows = await rowsOf(fixture("verl"), { ...options, columns: ["extra_info"] });
    expect(rows.map(({ row }) => row)).toEqual(expected);
    for (const { row, value } of rows) {
      expect(Object.keys(value)).toEqual(["extra_info"]);
      expect(value).toMatchObject({ extra_info: { index: row } });
    }
  });

  test("nothing is rounded, and maps, lists of lists, dates and dictionaries are what they say", async () => {
    expect(await valuesOf(fixture("odd"))).toEqual([
      {
        big: 2n ** 53n + 1n,
        when: new Date(0),
        nested: [[1, 2], []],
        map: { a: 1 },
        large: "x",
        dictionary: "x",
      },
      { big: 1, when: new Date(1), nested: null, map: {}, large: "y", dictionary: "y" },
      { big: null, when: new Date(2), nested: [[3]], map: null, large: null, dictionary: null },
    ]);
  });

  test.each(["exact", "exact-integers"])(
    "decimals of %s are exact wherever they are, as are whole numbers in JSON and marks in texts",
    async (name) => {
      const column = (values: readonly unknown[], key: string): unknown =>
        values.map((value) => (value as Record<string, unknown>)[key]);
      const values = await valuesOf(fixture(name));
      const expected: Readonly<Record<string, readonly unknown[]>> = {
        cents: [0.57, -1.1, null, 5],
        long: [12345678901234567891n, 0.12, "12345678901234567.89", -9007199254740993n],
        amount: ["90071992547409.93", -0.57, null, 3],
        whole: [9007199254740993n, 7, -7, null],
        fine: ["0.1234567890123456789", 0.1, 0, -1e-19],
        wide: [10n ** 40n, 1.5, -1.5, 0.1],
        list: [[0.57, null], [], null, [0.07]],
        lists: [[[0.57], []], [], null, [[0.07, 0.1]]],
        struct: [
          { a: 0.57, b: { c: 1.1 }, d: 1 },
          null,
          { a: null, b: null, d: null },
          { a: 0.07, b: { c: null }, d: 2 },
        ],
        map: [{ "0.57": 1.1 }, {}, null, { "-0.07": null }],
        tiny: [{ "-0.9": 1 }, {}, null, { "0.9": 2 }],
        ["__proto__"]: [0.57, 0.07, null, 1],
        json: [{ id: 12345678901234567891n, small: [1, 0.57] }, [], null, 9007199254740993n],
        text: ["\u{feff}bom", "", null, "\u{feff}"],
      };
      for (const [key, wanted] of Object.entries(expected)) {
        expect({ key, values: column(values, key) }).toEqual({ key, values: wanted });
      }
      expect(Object.keys(values[0] as object)).toEqual(Object.keys(expected));
      expect(await valuesOf(fixture(name), { columns: ["list"], rowStart: 3 })).toEqual([
        { list: [0.07] },
      ]);
    },
  );

  test("bytes of a text that are not UTF-8 are refused, as in JSON Lines", async () => {
    await expect(rowsOf(fixture("not-utf8"))).rejects.toMatchObject({
      code: "PARQUET_MALFORMED",
      message: expect.stringContaining("one of its texts is not UTF-8") as string,
    });
  });

  test("of what compresses it, all but LZ4 is read, and that is said", async () => {
    const codecs = ["none", "snappy", "gzip", "brotli", "zstd"];
    expect(await valuesOf(fixture("codecs"))).toEqual(
      [0, 1, 2, 3].map((index) =>
        Object.fromEntries(codecs.map((codec) => [codec, `${codec} ${index} `.repeat(20)])),
      ),
    );
  });

  test("LZ4 is read, with and without the frames of Hadoop", async () => {
    expect(await valuesOf(fixture("lz4"))).toEqual([
      { a: "x".repeat(100) },
      { a: "y" },
      { a: null },
    ]);
    const path = join(folder, "hadoop.parquet");
    const data = [
      { name: "a", data: ["one", "two"], type: "STRING" as const },
      { name: "b", data: [null, null], type: "STRING" as const, nullable: true },
    ];
    const file = parquetWriteBuffer({
      columnData: data,
      codec: "LZ4",
      compressors: { LZ4: inHadoopFrame },
    });
    await writeFile(path, Buffer.from(file));
    expect(await valuesOf(path)).toEqual([
      { a: "one", b: null },
      { a: "two", b: null },
    ]);
  });

  test.each(["v1", "v2"])(
    "columns of nulls, empty lists or empty texts alone are read under every codec, in pages %s",
    async (version) => {
      const codecs = ["snappy", "gzip", "brotli", "zstd", "lz4"];
      const row = Object.fromEntries(
        codecs.flatMap((codec) => [
          [`${codec}_nulls`, null],
          [`${codec}_lists`, []],
          [`${codec}_text`, ""],
        ]),
      );
      expect(await valuesOf(fixture(`no-values-${version}`))).toEqual([row, row]);
    },
  );

  test.each(["plain", "dictionary"])(
    "lists of structs in pages v2 are read where some are empty or missing: %s",
    async (encoding) => {
      const path = fixture(`v2-${encoding}`);
      const turns = [
        [{ role: "user", id: 1, score: 0.5, bits: true, deep: [1, 2] }],
        [],
        null,
        [null, { role: "tool", id: null, score: 2.5, bits: false, deep: [] }],
        ...Array.from({ length: 300 }, (_, id) => {
          const deep = id % 2 === 0 ? [id] : null;
          return id % 3 > 0 ? [] : [{ role: "user", id, score: id / 4, bits: id % 2 === 0, deep }];
        }),
      ];
      const rows = turns.map((one, index) => ({ index, turns: one }));
      expect(await valuesOf(path)).toEqual(rows);
      const part = { columns: ["turns"], rowStart: 190, rowEnd: 260 };
      expect(await rowsOf(path, part)).toEqual(
        turns.slice(190, 260).map((one, at) => ({ row: 190 + at, value: { turns: one } })),
      );
    },
  );

  test("a header of a page that cannot be read is refused by its column", async () => {
    const path = join(folder, "broken.parquet");
    const bytes = await readFile(fixture("v2-plain"));
    // The first column is not nested; behind it stand the pages of the second one.
    const metadata = parquetMetadata(Uint8Array.from(bytes).buffer);
    const column = metadata.row_groups[0]?.columns[1]?.meta_data;
    bytes[Number(column?.data_page_offset)] = 0xff;
    await writeFile(path, bytes);
    await expect(rowsOf(path)).rejects.toMatchObject({
      code: "PARQUET_MALFORMED",
      column: "turns.list.element.role",
      message: expect.stringContaining("the header of a page") as string,
    });
  });

  test("columns, fields and keys of maps called __proto__ arrive, and nothing else changes", async () => {
    const rows = await valuesOf(fixture("proto"));
    const own = (value: unknown): Record<string, unknown> =>
      Object.fromEntries([["__proto__", value]]);
    const pair = (value: unknown, key: string, other: unknown): Record<string, unknown> =>
      Object.fromEntries([
        ["__proto__", value],
        [key, other],
      ]);
    expect(rows.map((row) => JSON.stringify(row))).toEqual(
      [
        Object.fromEntries([
          ["__proto__", "__proto__"],
          ["struct", pair(1, "a", 2)],
          ["list", [own(own("deep"))]],
          ["map", pair(1, "k", 2)],
        ]),
        Object.fromEntries([
          ["__proto__", "b"],
          ["struct", pair(null, "a", 3)],
          ["list", []],
          ["map", {}],
        ]),
      ].map((row) => JSON.stringify(row)),
    );
    expect((await parquetInfo(fixture("proto"))).columns[0]).toBe("__proto__");
    const columns = ["__proto__"];
    expect(
      (await valuesOf(fixture("proto"), { columns })).map((row) => JSON.stringify(row)),
    ).toEqual(['{"__proto__":"__proto__"}', '{"__proto__":"b"}']);
  });

  test("a column called __proto__ is written, and missing where a row has none", async () => {
    const path = join(folder, "written.parquet");
    const columns = Object.fromEntries([["__proto__", "string" as const]]);
    await writeParquet(path, [Object.fromEntries([["__proto__", "x"]]), {}], { columns });
    expect((await valuesOf(path)).map((row) => JSON.stringify(row))).toEqual([
      '{"__proto__":"x"}',
      '{"__proto__":null}',
    ]);
  });

  test.each([
    ["it is empty", Buffer.alloc(0)],
    ["it is compressed by gzip, not Parquet", gzipSync("PAR1 and so on")],
    ["it is text in UTF-16, not Parquet", Buffer.from("\ufeffPAR1", "utf16le")],
    ["it is a zip archive, not Parquet", Buffer.from("PK\x03\x04 and so on")],
  ])("what a file is instead is said: %s", async (reason, bytes) => {
    const path = join(folder, "other.parquet");
    await writeFile(path, bytes);
    await expect(rowsOf(path)).rejects.toMatchObject({ code: "PARQUET_MALFORMED", reason });
  });

  test("what is no Parquet file, is cut off, or lacks a column is refused by name", async () => {
    const path = join(folder, "wrong.parquet");
    await expect(rowsOf(path)).rejects.toMatchObject({ code: "PARQUET_NOT_FOUND", path });
    await expect(rowsOf(folder)).rejects.toMatchObject({ name: "ParquetError", path: folder });
    for (const text of ["", "x", "this is a text, and long enough to be a footer"]) {
      await writeFile(path, text);
      await expect(rowsOf(path)).rejects.toMatchObject({ code: "PARQUET_MALFORMED", path });
    }
    const whole = await readFile(fixture("verl"));
    // Every page and the footer, each at its own place; what may be read is never wrong.
    const expected = await valuesOf(fixture("verl"));
    for (let at = 0; at < whole.length; at += 97) {
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] ?? 0) ^ 0xff;
      await writeFile(path, bytes);
      const rows = await rowsOf(path).catch((error: unknown) => error);
      if (Array.isArray(rows)) expect(rows).toHaveLength(expected.length);
      else expect(rows).toBeInstanceOf(ParquetError);
    }
    await writeFile(path, whole);
    await truncate(path, whole.length - 20);
    await expect(rowsOf(path)).rejects.toMatchObject({ code: "PARQUET_MALFORMED" });
    await expect(rowsOf(fixture("verl"), { columns: ["promt"] })).rejects.toMatchObject({
      code: "PARQUET_NO_COLUMN",
      column: "promt",
      reason: expect.stringContaining("data_source, prompt") as string,
    });
  });

  test("a signal ends it between rows", async () => {
    const stop = new AbortController();
    const seen: number[] = [];
    const reading = (async () => {
      for await (const { row } of readParquet(fixture("verl"), { signal: stop.signal })) {
        seen.push(row);
        if (row === 1) stop.abort(new Error("enough"));
      }
    })();
    await expect(reading).rejects.toThrow("enough");
    expect(seen).toEqual([0, 1]);
  });
});

describe("writing", () => {
  const columns = {
    name: "string",
    score: "double",
    count: "int32",
    valid: "boolean",
    at: "timestamp",
    extra: "json",
  } as const;

  test("row group by row group; what is read back is what was written", async () => {
    const path = join(folder, "new.parquet");
    const rows = Array.from({ length: 25 }, (_, index) => ({
      name: index === 3 ? null : `row ${index} é✓`,
      score: index === 4 ? null : index / 7,
      count: 100 - index,
      valid: index % 2 === 0,
      at: new Date(1_700_000_000_000 + index),
      extra: index === 5 ? null : { index, parts: [null, "x", { deep: true }] },
    }));
    const written = await writeParquet(path, rows, { columns, rowsPerGroup: 10 });
    expect(written).toBe(25);
    expect(await parquetInfo(path)).toEqual({
      rows: 25,
      columns: Object.keys(columns),
      rowGroups: [10, 10, 5],
    });
    expect(await valuesOf(path)).toEqual(rows);
    expect(await readdir(folder)).toEqual(["new.parquet"]);
  });

  test("no rows make a file with its columns", async () => {
    const path = join(folder, "empty.parquet");
    expect(await writeParquet(path, [], { columns })).toBe(0);
    expect(await parquetInfo(path)).toEqual({
      rows: 0,
      columns: Object.keys(columns),
      rowGroups: [],
    });
    expect(await rowsOf(path)).toEqual([]);
  });

  test.each([
    [{ name: 1 }, "name", "1 is no string"],
    [{ score: "1" }, "score", '"1" is no double'],
    [{ count: 2 ** 31 }, "count", "2147483648 is no int32"],
    [{ count: 1.5 }, "count", "1.5 is no int32"],
    [{ valid: 1 }, "valid", "1 is no boolean"],
    [{ at: new Date(Number.NaN) }, "at", "an instance of Date is no timestamp"],
    [{ extra: { n: Number.NaN } }, "extra", "$.n is NaN, which JSON cannot represent"],
  ])("%j is refused by row and column, and what was there stays", async (bad, column, reason) => {
    const path = join(folder, "kept.parquet");
    await writeParquet(path, [{ name: "before" }], { columns });
    const before = await readFile(path);
    const writing = writeParquet(path, [{}, bad], { columns, rowsPerGroup: 1 });
    await expect(writing).rejects.toMatchObject({
      code: "PARQUET_BAD_VALUE",
      row: 1,
      column,
      reason,
    });
    expect(await readFile(path)).toEqual(before);
    expect(await readdir(folder)).toEqual(["kept.parquet"]);
  });

  test.each([
    [
      { columns: { ids: "int64" } },
      {
        code: "PARQUET_BAD_TYPE",
        column: "ids",
        reason: 'its type is "int64"; there are string, double, int32, boolean, timestamp, json',
      },
    ],
    [{ columns: { ids: "toString" } }, { code: "PARQUET_BAD_TYPE", column: "ids" }],
    [{ columns: ["ids"] }, { code: "BAD_ARGUMENT", key: "columns" }],
    [{}, { code: "BAD_ARGUMENT", key: "columns" }],
    [
      { columns, rowsPerGroups: 1 },
      { code: "BAD_ARGUMENT", key: "rowsPerGroups" },
    ],
  ])("%j is refused before there is a file", async (options, error) => {
    const path = join(folder, "new.parquet");
    await expect(writeParquet(path, [{}], options as never)).rejects.toMatchObject(error);
    expect(await readdir(folder)).toEqual([]);
  });

  test("a row that is no object is refused by its number", async () => {
    const writing = writeParquet(join(folder, "new.parquet"), [{}, null as never], { columns });
    await expect(writing).rejects.toMatchObject({
      code: "PARQUET_BAD_VALUE",
      row: 1,
      reason: "a row must be an object with its columns, got null",
    });
    expect(await readdir(folder)).toEqual([]);
  });

  test("rows that end with an error, or have no folder to go to, leave nothing", async () => {
    const broken = (async function* () {
      yield { name: "one" };
      await Promise.reject(new Error("the source broke"));
    })();
    const path = join(folder, "new.parquet");
    await expect(writeParquet(path, broken, { columns, rowsPerGroup: 1 })).rejects.toThrow(
      "the source broke",
    );
    expect(await readdir(folder)).toEqual([]);
    await expect(writeParquet(join(folder, "no", "x"), [], { columns })).rejects.toMatchObject({
      code: "PARQUET_NOT_FOUND",
    });
  });

  /** In a process of its own: how much memory 60 row groups of 4 MB take. */
  test("memory is that of a row group, not of the file", async () => {
    const { count, heapMb } = sized({
      gate: { count: 40_000, heapMb: 84 },
      full: { count: 60_000, heapMb: 100 },
    });
    const script = join(folder, "big.mjs");
    const module = new URL("../src/index.ts", import.meta.url).href;
    await writeFile(
      script,
      `import { readParquet, writeParquet } from ${JSON.stringify(module)};
      let text = 1;
      function* rows() {
        for (let row = 0; row < ${count}; row++) {
          let name = "";
          for (let part = 0; part < 400; part++) name += (text = (text * 48271) % 2147483647).toString(36);
          yield { row, name };
        }
      }
      const path = process.argv[2];
      await writeParquet(path, rows(), { columns: { row: "int32", name: "string" }, rowsPerGroup: 1000 });
      let next = 0;
      for await (const { row, value } of readParquet(path)) {
        if (row !== next++ || value.row !== row) throw new Error("row " + row);
      }
      console.log(next);`,
    );
    const path = join(folder, "big.parquet");
    // There are 2.4 KB of text a row: more than this heap holds, of which what lives takes less than half. The rest is for garbage, where the machine is busy.
    const { stdout } = await promisify(execFile)(process.execPath, [
      `--max-old-space-size=${heapMb}`,
      script,
      path,
    ]);
    expect(stdout).toBe(`${count}\n`);
  });
});
