/** Seeds of the simulated world (simulation/main.ts): whatever the network and the machines do, every invariant holds. */
import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { sized } from "../../../test/fixtures/suite.ts";

const main = fileURLToPath(new URL("simulation/main.ts", import.meta.url));
const seeds = sized({ gate: 200, full: 40_000 });
const parts = Math.min(2, availableParallelism());

interface Report {
  readonly seeds: number;
  readonly calls: number;
  readonly failed: readonly { readonly seed: number; readonly problems: readonly string[] }[];
}

async function run(first: number, count: number): Promise<Report> {
  // Wherever the packages are built, it runs from source: it looks into them.
  const args = [main, "--json", "--most", "3", "--first", String(first), "--seeds", String(count)];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    maxBuffer: 2 ** 26,
  }).catch((error: { readonly stdout: string }) => error);
  return JSON.parse(stdout) as Report;
}

test("each call is answered once, none runs twice, nothing is given up while there is a way, and nothing is left", async () => {
  const each = seeds / parts;
  const reports = await Promise.all(
    Array.from({ length: parts }, (_, part) => run(part * each, each)),
  );
  // A seed that fails: node packages/cluster/test/simulation/main.ts --seed N
  expect(reports.flatMap(({ failed }) => failed)).toEqual([]);
  expect(reports.reduce((sum, report) => sum + report.seeds, 0)).toBe(seeds);
  expect(reports.reduce((sum, report) => sum + report.calls, 0)).toBeGreaterThan(seeds);
}, 1_800_000);

test("a seed tells the same story each time", async () => {
  const [once, again] = await Promise.all([run(77, 1), run(77, 1)]);
  expect({ ...again, seconds: 0 }).toEqual({ ...once, seconds: 0 });
});
