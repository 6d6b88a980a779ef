/** The bench of what being seen costs: what it may be told, and that each way runs. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { medianInterval } from "../../bench/measure/interval.ts";
import { inFull } from "../fixtures/suite.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const bench = (...flags: string[]): Promise<{ stdout: string }> =>
  promisify(execFile)(process.execPath, ["bench/overhead.ts", ...flags], { cwd: root });

/** Eight processes with a session or a reward loop each. */
const runsAll = inFull("it measures; what it measures is tested where it is, and flags below");

test.runIf(runsAll)("every way is measured, and another checkout beside it", async () => {
  const short = ["--rounds", "1", "--calls", "1000", "--samples", "1000"];
  const { stdout } = await bench(...short, "--before", ".");
  const rows = ["off", "off, once more", "page, followed", "OpenTelemetry", "both", "before"];
  for (const row of rows) {
    expect(stdout.match(new RegExp(`^${row} +[\\d.]+ +[\\d.]+ +[\\d.]+`, "gm"))).toHaveLength(2);
  }
});

test.each([
  ["--rounds", "0"],
  ["--calls", "10"],
  ["--before", "/nowhere"],
])("%s %s is refused", async (...flags) => {
  await expect(bench(...flags)).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^bench: .*; see --help\n$/) as string,
  });
});

test("the interval of a median holds it, and narrows with more values", () => {
  const [low, high] = medianInterval(Array.from({ length: 101 }, (_, index) => index));
  expect(low).toBeLessThan(50);
  expect(high).toBeGreaterThan(50);
  expect(medianInterval([3, 3, 3])).toEqual([3, 3]);
});
