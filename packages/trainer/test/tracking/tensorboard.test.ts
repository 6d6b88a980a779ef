/**
 * Event files: every record is whole by its own checksums, and the real TensorBoard lists what was told. That one is asked where RAYLING_TENSORBOARD_PYTHON
 * names a Python that has it (`python -m venv tb && tb/bin/pip install tensorboard`).
 */

import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Tracking } from "@rayling/trainer";
import { crc32c } from "../../src/tracking/tensorboard/crc32c.ts";
import { optionsIn, runFolder } from "./run-folder.ts";

const python = process.env["RAYLING_TENSORBOARD_PYTHON"];
const run = promisify(execFile);

async function logged(directory: string, steps: Readonly<Record<number, number>>): Promise<void> {
  await using tracking = await Tracking.open(optionsIn(directory, { logger: "tensorboard" }));
  for (const [step, score] of Object.entries(steps)) {
    tracking.log({ "critic/score/mean": score, "actor/lr": 1e-6 }, Number(step));
  }
  const generations = [{ input: "1 + 1 =", output: "two\n<b>2</b>", score: 0.5 }];
  tracking.generations(Number(Object.keys(steps).at(-1)), generations);
}

/** The bytes of each record; throws where a checksum is wrong, or something is left over. */
function recordsIn(file: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < file.length;) {
    const length = Number(file.readBigUInt64LE(at));
    const bytes = file.subarray(at + 12, at + 12 + length);
    expect(unmasked(file.readUInt32LE(at + 8))).toBe(crc32c(file.subarray(at, at + 8)));
    expect(unmasked(file.readUInt32LE(at + 12 + length))).toBe(crc32c(bytes));
    records.push(bytes);
    at += 16 + length;
  }
  return records;
}

/** TFRecord's mask taken off again: subtracted, and turned back. */
function unmasked(masked: number): number {
  const turned = (masked - 0xa282ead8) >>> 0;
  return ((turned >>> 17) | (turned << 15)) >>> 0;
}

const eventFiles = async (directory: string): Promise<string[]> =>
  (await readdir(join(directory, "tensorboard"))).map((name) =>
    join(directory, "tensorboard", name),
  );

test.each([
  ["nothing", [], 0],
  ["123456789", [...Buffer.from("123456789")], 0xe3069283],
  ["32 zeros (RFC 3720 B.4)", Array.from({ length: 32 }, () => 0), 0x8a9136aa],
  ["32 ones", Array.from({ length: 32 }, () => 255), 0x62a8ab43],
  ["0 to 31", Array.from({ length: 32 }, (_, index) => index), 0x46dd794e],
])("CRC-32C of %s", (_, bytes, crc) => {
  expect(crc32c(Uint8Array.from(bytes))).toBe(crc);
});

test("a file is whole records: its version, then an event for each step", async () => {
  const directory = await runFolder();
  await logged(directory, { 1: 0.25, 300: 0.5 });
  const [file] = await eventFiles(directory);
  const records = recordsIn(await readFile(file as string));
  expect(records).toHaveLength(4);
  expect(records[0]?.toString("latin1")).toContain("brain.Event:2");
  const quarter = Buffer.from([
    0x0a,
    17,
    ...Buffer.from("critic/score/mean"),
    0x15,
    0,
    0,
    0x80,
    0x3e,
  ]);
  expect(records[1]?.includes(quarter)).toBe(true);
  // Field 2, 300 in two groups of seven bits.
  expect(records[2]?.includes(Buffer.from([0x10, 0xac, 0x02]))).toBe(true);
});

test("a process of its own has a file of its own, read after those before it", async () => {
  const directory = await runFolder();
  await logged(directory, { 1: 1 });
  await logged(directory, { 1: 2 });
  const files = await eventFiles(directory);
  expect(files).toHaveLength(2);
  expect(files).toEqual(files.toSorted());
});

test("a file is read after those before it, also if the clock has gone back", async () => {
  const directory = await runFolder();
  await logged(directory, { 1: 1 });
  const [first] = await eventFiles(directory);
  const hourBefore = Date.now() - 3_600_000;
  vi.spyOn(Date, "now").mockReturnValue(hourBefore);
  onTestFinished(() => void vi.restoreAllMocks());
  await logged(directory, { 1: 2 });
  const files = (await eventFiles(directory)).toSorted();
  expect(files).toHaveLength(2);
  expect(files[0]).toBe(first);
});

test("experiments and runs that share TENSORBOARD_DIR have folders of their own, and a resumed run stays in its own", async () => {
  const [shared, directory] = [await runFolder(), await runFolder()];
  vi.stubEnv("TENSORBOARD_DIR", shared);
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const experimentName of ["one", "other"]) {
    const options = optionsIn(directory, { logger: "tensorboard", experimentName });
    await using tracking = await Tracking.open(options);
    tracking.log({ "critic/score/mean": 1 }, 1);
  }
  expect((await readdir(join(shared, "maths"))).toSorted()).toEqual(["one", "other"]);
  const next = await runFolder();
  for (const step of [1, 2]) {
    const options = optionsIn(next, { logger: "tensorboard", experimentName: "one" });
    await using tracking = await Tracking.open(options);
    tracking.log({ "critic/score/mean": 1 }, step);
  }
  const counts: Record<string, number[]> = {};
  for (const name of await readdir(shared, { recursive: true })) {
    if (!name.includes("tfevents")) continue;
    const place = dirname(name).replace(/-[0-9a-f]{6}$/, "");
    (counts[place] ??= []).push(recordsIn(await readFile(join(shared, name))).length);
  }
  // A version and a step: nobody is told to forget anything, but by the run that goes on.
  expect(counts).toEqual({
    [`maths/one/${basename(directory)}`]: [2],
    [`maths/other/${basename(directory)}`]: [2],
    [`maths/one/${basename(next)}`]: [2, 3],
  });
  expect(await readdir(directory)).toEqual([]);
});

describe.skipIf(python === undefined)("the real TensorBoard (RAYLING_TENSORBOARD_PYTHON)", () => {
  const listed = async (directory: string): Promise<unknown> => {
    const script = join(import.meta.dirname, "list-events.py");
    const { stdout } = await run(python as string, [script, join(directory, "tensorboard")]);
    return JSON.parse(stdout);
  };

  test("lists the scalars and the generations", async () => {
    const directory = await runFolder();
    await logged(directory, { 1: 0.25, 2: 0.5, 300: 0.75 });
    expect(await listed(directory)).toEqual({
      scalars: {
        "critic/score/mean": [
          [1, 0.25],
          [2, 0.5],
          [300, 0.75],
        ],
        "actor/lr": [1, 2, 300].map((step) => [step, Math.fround(1e-6)]),
      },
      texts: {
        "val/generations": [[300, ["### 1: score 0.5\n\n    1 + 1 =\n\n    two\n    <b>2</b>"]]],
      },
    });
  });

  test("a resumed run counts each step once, and keeps what the step that it goes on from had", async () => {
    const directory = await runFolder();
    await logged(directory, { 1: 0.25, 2: 0.5, 3: 0.75 });
    const resumed = await Tracking.open(optionsIn(directory, { logger: "tensorboard" }));
    resumed.log({ "val-core/a/mean@1": 0.5 }, 1);
    resumed.log({ "critic/score/mean": 5 }, 2);
    resumed.log({ "critic/score/mean": 7 }, 3);
    await resumed.close();
    expect(await listed(directory)).toMatchObject({
      scalars: {
        "critic/score/mean": [
          [1, 0.25],
          [2, 5],
          [3, 7],
        ],
      },
    });
  });
});
