/** Rollouts on disk are verl's lines, once for each row. */

import { existsSync } from "node:fs";
import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { dumpRollouts } from "@rayling/trainer";
import { runFolder } from "./run-folder.ts";

const rollouts = {
  step: 7,
  inputs: ["1+1=", "2+2="],
  outputs: ["2", "fünf"],
  gts: ["2", null],
  scores: [1, NaN],
};

test("a line for each row: input, output, gts, score, step, and columns of the same length", async () => {
  const directory = join(await runFolder(), "dump");
  const extras = { acc: [true, undefined], pred: ["2", NaN], short: [1] };
  const path = await dumpRollouts(directory, { ...rollouts, extras });
  expect(path).toBe(join(directory, "7.jsonl"));
  expect(await readFile(path, "utf8")).toBe(
    '{"input":"1+1=","output":"2","gts":"2","score":1,"step":7,"acc":true,"pred":"2"}\n' +
      '{"input":"2+2=","output":"fünf","gts":null,"score":null,"step":7,"acc":null,"pred":null}\n',
  );
});

test.runIf(existsSync("/dev/full"))("a full disk is named, with the path", async () => {
  const directory = await runFolder();
  const path = join(directory, "7.jsonl");
  await symlink("/dev/full", path);
  await expect(dumpRollouts(directory, rollouts)).rejects.toMatchObject({
    code: "JSONL_IO",
    path,
    message: expect.stringContaining("ENOSPC"),
  });
});

test("extra info with the name of a column takes nothing away", async () => {
  const extras = { output: ["a", "b"], input: [1, 2], step: [3, 4], gts: [5, 6], score: [7, 8] };
  const path = await dumpRollouts(await runFolder(), { ...rollouts, extras });
  const [first = ""] = (await readFile(path, "utf8")).split("\n");
  expect(JSON.parse(first)).toEqual({
    input: "1+1=",
    output: "2",
    gts: "2",
    score: 1,
    step: 7,
    extra_output: "a",
    extra_input: 1,
    extra_step: 3,
    extra_gts: 5,
  });
});

test("whatever a score function told is written, with null for what JSON has no word for", async () => {
  const circle: Record<string, unknown> = { at: new Date(0) };
  circle["self"] = [circle];
  const extras = {
    told: [
      { deep: [Number.NaN, -0.5, 5n], map: new Map([[1, new Set(["a", undefined])]]) },
      { circle, run: () => 1, bytes: Uint8Array.of(1, 2), view: new DataView(new ArrayBuffer(1)) },
    ],
  };
  const path = await dumpRollouts(await runFolder(), { ...rollouts, extras });
  const told = (await readFile(path, "utf8")).trimEnd().split("\n");
  expect(told.map((line) => (JSON.parse(line) as { told: unknown }).told)).toEqual([
    { deep: [null, -0.5, "5"], map: { 1: ["a", null] } },
    {
      circle: { at: "1970-01-01T00:00:00.000Z", self: [null] },
      run: null,
      bytes: [1, 2],
      view: null,
    },
  ]);
});

test("a step that is dumped again has its rows once", async () => {
  const directory = await runFolder();
  await dumpRollouts(directory, rollouts);
  const path = await dumpRollouts(directory, rollouts);
  expect((await readFile(path, "utf8")).trim().split("\n")).toHaveLength(2);
});

test("columns that do not fit each other are refused by name", async () => {
  const dumping = dumpRollouts(await runFolder(), { ...rollouts, scores: [1] });
  await expect(dumping).rejects.toMatchObject({
    code: "TRAINER_INPUT",
    input: "scores",
    message: "rollouts of step 7: scores has 1 rows, inputs 2",
  });
});
