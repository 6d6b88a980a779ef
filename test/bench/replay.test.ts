/** A short replay of the published runs: not how long it takes, but that every sample is scored and trained once, and none is older than its schedule allows. */

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { inFull, sized } from "../fixtures/suite.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

interface Row {
  readonly plan: { readonly name: string; readonly recorded: { readonly seconds: unknown } };
  readonly samples: number;
  readonly distinct: number;
  readonly scored: number;
  readonly worstStaleness: number;
  readonly phases: readonly Phase[];
}

interface SavingRow {
  readonly plan: { readonly run: string; readonly name: string };
  readonly samples: number;
  readonly scored: number;
  readonly calls: number;
  readonly verdicts: number;
  readonly meanScore: number;
}

interface Phase {
  readonly step: number;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** How old rollouts may be, in how many parts a step is trained, and whether batches are generated a step before they are trained. */
const rules: Readonly<Record<string, readonly [staleness: number, parts: number, ahead: boolean]>> =
  {
    "recipe-sync": [0, 1, false],
    "recipe-mini-batch-pipeline": [0, 4, false],
    "recipe-one-step-off-policy": [1, 1, true],
    "recipe-one-step-pipeline": [1, 4, true],
    "recipe-one-step-pipeline-decoupled": [1, 4, true],
    "one-step-pipeline": [1, 4, true],
    "streaming-1": [1, 4, true],
    "streaming-1-auto-448": [1, 4, true],
    "streaming-on-policy-320": [0, 4, false],
    "streaming-1-heavy-tail-hedged": [1, 4, true],
    answers: [1, 4, true],
    "answers-join": [1, 4, true],
    "answers-cache": [1, 4, true],
    "answers-cascade": [1, 4, true],
    "answers-cascade-cache": [1, 4, true],
  };
/** In the gate one row for each thing a schedule may do: wait for all, train in parts, look ahead, stream. */
const inGate = ["recipe-sync", "recipe-mini-batch-pipeline", "streaming-1"];
const ran = sized({ gate: inGate, full: Object.keys(rules) });
const steps = 6;

test("the published runs and ours, in short", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-replay-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const json = join(folder, "figures.json");
  const size = ["--scale", "5000", "--steps", String(steps), "--prompts", "16"];
  const replayed = async (names: readonly string[], ...more: string[]): Promise<string> => {
    const flags = [...size, "--only", names.join(","), "--report", join(folder, "pages"), ...more];
    return (await run(process.execPath, ["bench/replay/main.ts", ...flags], { cwd: root })).stdout;
  };
  const rowsIn = async (path: string): Promise<Row[]> =>
    (JSON.parse(await readFile(path, "utf8")) as { rows: Row[] }).rows;
  const [first, last] = [ran.slice(0, -1), ran.slice(-1)];
  const stdout = await replayed(first, "--json", json);
  // The last of them beside the others.
  const beside = join(folder, "beside.json");
  const merged = await replayed(last, "--json", beside, "--beside", json);
  const rows = [...(await rowsIn(json)), ...(await rowsIn(beside)).slice(-1)];
  expect(rows.map(({ plan }) => plan.name)).toEqual(ran);
  for (const { plan, samples, distinct, scored, worstStaleness, phases } of rows) {
    const [staleness, parts, ahead] = rules[plan.name] as NonNullable<(typeof rules)[string]>;
    expect(first.includes(plan.name) ? stdout : merged).toContain(plan.name);
    expect([plan.name, samples, distinct, scored]).toEqual([plan.name, 480, 480, 480]);
    expect(worstStaleness).toBe(staleness);
    expect(phases.filter(({ name }) => name === "save_checkpoint")).toHaveLength(1);
    for (let step = 1; step <= steps; step++) {
      const of = (wanted: string): Phase[] =>
        phases.filter((one) => one.step === step && one.name === wanted);
      const generated = of("gen");
      const trained = of("update_actor");
      // Ahead, the first step has its own batch and the next one's, and the last has none left.
      const batches = ahead ? 1 + Number(step === 1) - Number(step === steps) : 1;
      expect([plan.name, step, generated.length]).toEqual([plan.name, step, batches]);
      expect([plan.name, step, trained.length]).toEqual([plan.name, step, parts]);
      // What a step generates it generates before it trains, and it knows the log-probs of all before that.
      const firstUpdate = Math.min(...trained.map(({ startMs }) => startMs));
      for (const { endMs } of [...generated, ...of("old_log_prob").slice(0, 1)]) {
        expect(endMs).toBeLessThanOrEqual(firstUpdate);
      }
    }
    const tested = phases.flatMap(({ name, step }) => (name === "testing" ? [step] : []));
    expect([...new Set(tested)]).toEqual([5, 6]);
  }
  expect(
    await readFile(join(folder, "pages/7b-megatron/streaming-1/report.html"), "utf8"),
  ).toContain("<html");
  const shown = merged.split("\n").map((line) => line.split(" ")[0]);
  expect(shown.filter((name) => name !== undefined && name in rules)).toEqual(ran);
  const told = `^${first.join(", ")}: node bench/replay/main\\.ts --scale`;
  expect(merged).toMatch(new RegExp(told, "m"));
  const other = run(
    process.execPath,
    ["bench/replay/main.ts", "--scale", "500", "--beside", json],
    { cwd: root },
  );
  await expect(other).rejects.toThrow(/its scale is 5000, not 500/);
});

test.runIf(
  inFull(
    "nine trainings; packages/reward-loop/test has what joins, caches and cascades, and the rows above show that each sample is scored once",
  ),
)(
  "all runs have the recipe's rows and one of ours, and what keeps calls from the judge keeps the scores",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-replay-test-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const json = join(folder, "figures.json");
    const size = ["--scale", "5000", "--steps", "3", "--prompts", "16", "--parallel", "3"];
    const answers = ["answers", "answers-join", "answers-cache", "answers-cascade"];
    const only = ["streaming-1", "recipe-one-step-pipeline-decoupled", ...answers].join(",");
    const flags = ["--run", "all", ...size, "--only", only, "--json", json, "--report", folder];
    await run(process.execPath, ["bench/replay/main.ts", ...flags], { cwd: root });
    const { rows } = JSON.parse(await readFile(json, "utf8")) as { rows: SavingRow[] };
    expect(rows.map(({ plan }) => `${plan.run} ${plan.name}`)).toEqual([
      "7b-megatron recipe-one-step-pipeline-decoupled",
      "7b-megatron streaming-1",
      ...answers.map((name) => `7b-megatron ${name}`),
      "7b-fsdp streaming-1",
      "3b-fsdp streaming-1",
      "3b-megatron streaming-1",
    ]);
    const named = (name: string): SavingRow => {
      const row = rows.find(({ plan }) => plan.name === name);
      if (row === undefined) throw new Error(`there is no row ${name}`);
      return row;
    };
    const all = named("answers");
    expect([all.samples, all.scored, all.calls]).toEqual([240, 240, 240]);
    for (const name of answers.slice(1)) {
      const { verdicts, meanScore, calls, scored } = named(name);
      expect([name, verdicts, meanScore, scored]).toEqual([name, all.verdicts, all.meanScore, 240]);
      expect(calls).toBeLessThan(240);
      expect(calls).toBeGreaterThan(0);
    }
  },
);

test.runIf(
  inFull("it decides how long the bench's policies take; the rows above have the recipe's means"),
)("the times of each step are those of a folder, where it has them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-replay-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const timers = ["adv", "gen", "old_log_prob", "ref", "update_actor"];
  const rows = [
    ["step", ...timers.map((timer) => `timing_s/${timer}`)],
    [0, "", "", "", "", ""],
    [1, 9, 10, 20, 30, 40],
    [2, 9, 11, 21, 31, 41],
  ];
  await writeFile(join(folder, "7b-megatron-baseline.csv"), `${rows.join("\n")}\n`);
  const json = join(folder, "figures.json");
  const only = ["--only", "recipe-sync,recipe-mini-batch-pipeline", "--json", json];
  const short = ["--scale", "5000", "--steps", "2", "--prompts", "4", "--report", folder];
  const flags = [...short, ...only, "--timings", folder];
  await run(process.execPath, ["bench/replay/main.ts", ...flags], { cwd: root });
  const { rows: replayed } = JSON.parse(await readFile(json, "utf8")) as { rows: Row[] };
  expect(replayed.map(({ plan }) => plan.recorded.seconds)).toMatchObject([
    { gen: [10, 11], old_log_prob: [20, 21], ref: [30, 31], update_actor: [42.6, 43.6] },
    { gen: 40.4, old_log_prob: 46.7, ref: 38 },
  ]);
});

test.runIf(
  inFull("the rows above are chosen by their names, and what cannot be chosen is refused below"),
)("rows are chosen by their schedules, and of those by their names", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-replay-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const rowsOf = async (...flags: string[]): Promise<string[]> => {
    const size = ["--scale", "5000", "--steps", "1", "--prompts", "4"];
    const short = [...size, "--report", folder, ...flags];
    const { stdout } = await run(process.execPath, ["bench/replay/main.ts", ...short], {
      cwd: root,
    });
    return Object.keys(rules).filter((name) => new RegExp(`^ *${name} `, "m").test(stdout));
  };
  expect(await rowsOf("--schedule", "sync,mini-batch-pipeline")).toEqual([
    "recipe-sync",
    "recipe-mini-batch-pipeline",
  ]);
  expect(await rowsOf("--schedule", "all", "--only", "streaming-1")).toEqual(["streaming-1"]);
});

const wrong: readonly [string[], string][] = [
  [["--timings", "/no/such"], "--timings /no/such has no times of 7b-megatron"],
  [
    ["--schedule", "sync,baseline"],
    '--schedule takes all, sync, one-step-off-policy, mini-batch-pipeline, one-step-pipeline, streaming, not "baseline"',
  ],
  [
    ["--schedule", "sync", "--only", "streaming-1"],
    "--only and --schedule have no row in common; rows are recipe-sync, ",
  ],
  // As --schedule.
  [["--run", "70b"], '--run takes 7b-megatron, 7b-fsdp, 3b-fsdp, 3b-megatron, all, not "70b"'],
];
test.each(sized({ gate: wrong.slice(0, 3), full: wrong }))(
  "%j is what it cannot do: one clear line",
  async (flags, message) => {
    const failed = run(process.execPath, ["bench/replay/main.ts", ...flags], { cwd: root });
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bench: .*; see --help\n$/) as string,
    });
    await expect(failed).rejects.toThrow(message);
  },
);
