/** An offline run of wandb: its framing and its records, read back by the rules of the format. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { expect, test, vi } from "vitest";
import { Tracking } from "@rayling/trainer";
import { RecordLog } from "../../src/tracking/wandb/record-log.ts";
import { optionsIn, runFolder } from "./run-folder.ts";

/** The records of a log; throws where a checksum, an order or a length is wrong. */
function recordsIn(file: Buffer): Buffer[] {
  expect(file.subarray(0, 4).toString()).toBe(":W&B");
  expect(file.readUInt16LE(4)).toBe(0xbee1);
  const records: Buffer[] = [];
  let parts: Buffer[] | undefined;
  for (let at = 7; at < file.length;) {
    const left = 32_768 - (at % 32_768);
    if (left < 7) {
      expect(file.subarray(at, at + left)).toEqual(Buffer.alloc(left));
      at += left;
      continue;
    }
    const [length, kind] = [file.readUInt16LE(at + 4), file.readUInt8(at + 6)];
    const bytes = file.subarray(at + 7, at + 7 + length);
    expect(7 + length).toBeLessThanOrEqual(left);
    expect(bytes).toHaveLength(length);
    expect(file.readUInt32LE(at)).toBe(crc32(file.subarray(at + 6, at + 7 + length)));
    expect(parts === undefined).toBe(kind === 1 || kind === 2);
    parts = [...(parts ?? []), bytes];
    if (kind === 1 || kind === 4) {
      records.push(Buffer.concat(parts));
      parts = undefined;
    }
    at += 7 + length;
  }
  expect(parts).toBeUndefined();
  return records;
}

/** The bytes of a field, all of them, by its number. */
function fieldsOf(bytes: Uint8Array): Map<number, (Uint8Array | number)[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, (Uint8Array | number)[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const value = type === WireType.LengthDelimited ? reader.bytes() : Number(reader.int64());
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

const textOf = (value: Uint8Array | number | undefined): string =>
  Buffer.from(value as Uint8Array).toString();

/** Rows of the history: step and values. */
function rowsOf(records: readonly Buffer[]): [unknown, Record<string, string>][] {
  return records.flatMap((record) => {
    const [history] = fieldsOf(record).get(2) ?? [];
    if (history === undefined) return [];
    const fields = fieldsOf(history as Uint8Array);
    const items = (fields.get(1) ?? []).map((item) => fieldsOf(item as Uint8Array));
    const values = items.map((item) => [textOf(item.get(1)?.[0]), textOf(item.get(16)?.[0])]);
    const [step] = fieldsOf(fields.get(2)?.[0] as Uint8Array).get(1) ?? [];
    return [
      [step, Object.fromEntries(values) as Record<string, string>] as [
        unknown,
        Record<string, string>,
      ],
    ];
  });
}

async function logOf(directory: string): Promise<{ folder: string; records: Buffer[] }> {
  const [name = ""] = await readdir(join(directory, "wandb"));
  const folder = join(directory, "wandb", name);
  const [log = ""] = (await readdir(folder)).filter((file) => file.endsWith(".wandb"));
  expect(name).toMatch(/^offline-run-\d{8}_\d{6}-[a-z0-9]{8}$/);
  expect(log).toBe(`run-${name.slice(-8)}.wandb`);
  return { folder, records: recordsIn(await readFile(join(folder, log))) };
}

test("records of every length around the end of a block are framed as they were", () => {
  for (let first = 32_744; first <= 32_756; first += 1) {
    const log = new RecordLog();
    const records = [first, 0, 1, 70_000, 5].map((length) => Buffer.alloc(length, length));
    const file = Buffer.concat([log.begin(), ...records.map((record) => log.framed(record))]);
    const read = recordsIn(file);
    expect(read.map(({ length }) => length)).toEqual(records.map(({ length }) => length));
    expect(Buffer.concat(read).equals(Buffer.concat(records))).toBe(true);
  }
});

test("a step is one row with its validation and its table, whatever comes between", async () => {
  const directory = await runFolder();
  const config = { trainer: { logger: ["wandb"] } };
  await using tracking = await Tracking.open(optionsIn(directory, { logger: "wandb", config }));
  tracking.log({ "val-core/a/mean@1": 0.25 }, 0);
  tracking.log({ loss: 1, "critic/x": NaN }, 1);
  tracking.log({ loss: 2 }, 2);
  tracking.log({ "val-core/a/mean@1": 0.5 }, 1);
  tracking.generations(1, [{ input: "é", output: "o", score: NaN }]);
  tracking.log({ loss: 3, "timing_s/step": Infinity }, 3);
  await tracking.close();
  const { folder, records } = await logOf(directory);
  const rows = rowsOf(records);
  expect(rows).toMatchObject([
    [0, { "val-core/a/mean@1": "0.25", _step: "0" }],
    [1, { loss: "1", "critic/x": "NaN", "val-core/a/mean@1": "0.5" }],
    [2, { loss: "2" }],
    [3, { loss: "3", "timing_s/step": "Infinity" }],
  ]);
  const { path } = JSON.parse(rows[1]?.[1]["val/generations"] ?? "") as { readonly path: string };
  expect(JSON.parse(await readFile(join(folder, "files", path), "utf8"))).toEqual({
    columns: ["step", "input", "output", "score"],
    data: [[1, "é", "o", null]],
  });
});

test.each([
  { end: {}, code: 0 },
  { end: { error: new Error("no rewards") }, code: 1 },
])("the log ends with the exit code $code", async ({ end, code }) => {
  const directory = await runFolder();
  const tracking = await Tracking.open(optionsIn(directory, { logger: "wandb" }));
  tracking.log({ loss: 1 }, 1);
  await tracking.close(end);
  const { records } = await logOf(directory);
  const [exit] = fieldsOf(records.at(-1) ?? Buffer.alloc(0)).get(18) ?? [];
  expect(fieldsOf(exit as Uint8Array).get(1)).toEqual([code]);
});

test("WANDB_DIR and WANDB_ENTITY say where the run is and whose it is", async () => {
  const [shared, directory] = [await runFolder(), await runFolder()];
  vi.stubEnv("WANDB_DIR", shared);
  vi.stubEnv("WANDB_ENTITY", "ada");
  try {
    await (await Tracking.open(optionsIn(directory, { logger: "wandb" }))).close();
  } finally {
    vi.unstubAllEnvs();
  }
  const { records } = await logOf(shared);
  const [run] = fieldsOf(records[1] ?? Buffer.alloc(0)).get(17) ?? [];
  const fields = fieldsOf(run as Uint8Array);
  expect([2, 3, 8].map((field) => textOf(fields.get(field)?.[0]))).toEqual([
    "ada",
    "maths",
    "grpo",
  ]);
  expect(await readdir(directory)).toEqual([]);
});
