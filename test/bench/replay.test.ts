/** A short replay of the published runs: not how long it takes, but that every sample is scored and trained once, and none is older than its schedule allows. */

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

interface Row {
  readonly plan: { readonly name: string };
  readonly samples: number;
  readonly distinct: number;
  readonly worstStaleness: number;
  readonly phases: readonly { readonly step: number; readonly name: string }[];
}

const bounds: Readonly<Record<string, number>> = {
  "recipe-sync": 0,
  "recipe-mini-batch-pipeline": 0,
  "recipe-one-step-off-policy": 1,
  "recipe-one-step-pipeline": 1,
  "one-step-pipeline": 1,
  "streaming-1": 1,
  "streaming-1-auto-448": 1,
  "streaming-on-policy-320": 0,
  "streaming-1-heavy-tail-hedged": 1,
};

test("the published runs and ours, in short", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-replay-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const json = join(folder, "figures.json");
  const flags = ["--scale", "5000", "--steps", "6", "--prompts", "16", "--json", json];
  const { stdout } = await run(process.execPath, ["bench/replay/main.ts", ...flags], { cwd: root });
  const { rows } = JSON.parse(await readFile(json, "utf8")) as { rows: Row[] };
  expect(rows.map(({ plan }) => plan.name)).toEqual(Object.keys(bounds));
  for (const { plan, samples, distinct, worstStaleness, phases } of rows) {
    expect(stdout).toContain(plan.name);
    expect([plan.name, samples, distinct]).toEqual([plan.name, 480, 480]);
    expect(worstStaleness).toBe(bounds[plan.name]);
    const counts = countsOf(phases.map(({ name }) => name));
    expect(counts).toMatchObject({ gen: 6, save_checkpoint: 1 });
    const tested = phases.flatMap(({ name, step }) => (name === "testing" ? [step] : []));
    expect([...new Set(tested)]).toEqual([5, 6]);
  }
});

test("rows are chosen by their schedules, and of those by their names", async () => {
  const rowsOf = async (...flags: string[]): Promise<string[]> => {
    const short = ["--scale", "5000", "--steps", "1", "--prompts", "4", ...flags];
    const { stdout } = await run(process.execPath, ["bench/replay/main.ts", ...short], {
      cwd: root,
    });
    return Object.keys(bounds).filter((name) => new RegExp(`^ *${name} `, "m").test(stdout));
  };
  expect(await rowsOf("--schedule", "sync,mini-batch-pipeline")).toEqual([
    "recipe-sync",
    "recipe-mini-batch-pipeline",
  ]);
  expect(await rowsOf("--schedule", "all", "--only", "streaming-1")).toEqual(["streaming-1"]);
});

test.each([
  [["--run", "70b"], '--run takes 7b-megatron, 7b-fsdp, 3b-fsdp, 3b-megatron, not "70b"'],
  [
    ["--schedule", "sync,baseline"],
    '--schedule takes all, sync, one-step-off-policy, mini-batch-pipeline, one-step-pipeline, streaming, not "baseline"',
  ],
  [
    ["--schedule", "sync", "--only", "streaming-1"],
    "--only and --schedule have no row in common; rows are recipe-sync, ",
  ],
])("%j is what it cannot do: one clear line", async (flags, message) => {
  const failed = run(process.execPath, ["bench/replay/main.ts", ...flags], { cwd: root });
  await expect(failed).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^bench: .*; see --help\n$/) as string,
  });
  await expect(failed).rejects.toThrow(message);
});

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
