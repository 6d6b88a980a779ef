/** `rayling score` when something happens to its file while it is written: rewards that are gone are never told as written. */

import { appendFile, copyFile, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folder, inProcess, recordsOf, start, startShell, workspace } from "./command.ts";
import { sized } from "../../../test/fixtures/suite.ts";

/** Of the demo as many as can be lost on the way. */
const problems = 200;
const total = 4 * problems;
const input = join(workspace, "examples/data/arithmetic-solutions.jsonl");
const demo = ["score", "--demo", "--baseline", "0", "--workers", "1"];
beforeAll(async () => {
  const directory = await folder((remove) => void closing.push(remove));
  const some = join(directory, "solutions.jsonl");
  const lines = (await readFile(input, "utf8")).split("\n");
  await writeFile(some, lines.slice(0, problems).join("\n"));
  demo.push("--solutions", some);
});
const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

async function linesOf(path: string): Promise<number> {
  return existsSync(path) ? (await readFile(path, "utf8")).split("\n").length - 1 : 0;
}

/** How many rewards an error says that there are. */
function toldOf(stderr: string): number {
  const [, count] = /; (\d+) of 800 rewards are in /.exec(stderr) ?? [];
  return Number(count);
}

describe("a file of rewards that was changed under way is a failure that says how many are left", () => {
  const changes: readonly [string, (path: string) => Promise<unknown>, RegExp][] = [
    ["replaced by a copy", replaceByCopy, /another file took its place/],
    // How each is found out is in packages/data-proto/test/jsonl.test.ts.
    ["emptied", (path) => truncate(path, 0), /it was cut off/],
    ["removed", (path) => rm(path), /it was removed/],
    ["moved away", (path) => rename(path, `${path}.old`), /it was removed/],
    ["written by another", (path) => appendFile(path, "\n"), /something else writes it, too/],
  ];
  test.each(sized({ gate: changes.slice(0, 1), full: changes }))(
    "%s",
    async (_, change, reason) => {
      const out = join(await folder(), "rewards.jsonl");
      const { ended } = start(...demo, "--latency", "40,80", "--out", out);
      await expect.poll(() => linesOf(out), { timeout: 60_000, interval: 5 }).toBeGreaterThan(20);
      await change(out);
      const { code, stdout, stderr } = await ended;
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(reason);
      // A copy may have been made in the middle of a line.
      const there = (await linesOf(out)) === 0 ? 0 : (await recordsOf(out, { torn: true })).length;
      expect(toldOf(stderr)).toBe(there);

      // What is gone is scored again, and nothing else.
      const again = await inProcess(...demo, "--latency", "0", "--out", out, "--resume");
      expect(again).toMatchObject({ code: 0 });
      expect(again.stdout).toMatch(
        new RegExp(`^samples +${total}${there === 0 ? "" : `, ${there} of before`}$`, "m"),
      );
    },
  );
});

async function replaceByCopy(path: string): Promise<void> {
  await copyFile(path, `${path}.copy`);
  await rename(`${path}.copy`, path);
}

test("a disk that fills up: the whole lines that it has are counted, and gone on with", async () => {
  const out = join(await folder(), "rewards.jsonl");
  // A file may be so long and no longer: the last write is cut off, as on a full disk.
  const { ended } = startShell(`ulimit -f 200; "$@" ${demo.join(" ")} --latency 0 --out ${out}`);
  const { code, stdout, stderr } = await ended;
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("EFBIG");
  const whole = await linesOf(out);
  expect(whole).toBeGreaterThan(10);
  expect(toldOf(stderr)).toBe(whole);
  const again = await inProcess(...demo, "--latency", "0", "--out", out, "--resume");
  expect(again).toMatchObject({ code: 0 });
  expect(again.stdout).toMatch(new RegExp(`^samples +${total}, ${whole} of before$`, "m"));
});
