/** The files of a run: what is told is there, also after a kill, and a resumed run counts each step once. */

import { execFile } from "node:child_process";
import {
  appendFile,
  mkdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { readJsonl } from "@rayling/data-proto";
import { readRun, Tracking } from "@rayling/trainer";
import { FollowedRun } from "@rayling/trainer/runs";
import { gitCommit } from "../../src/tracking/files/git-commit.ts";
import { loadTrainerConfig } from "../../src/config/index.ts";
import { verlTree } from "../../src/config/print-config.ts";
import { commandText } from "../../src/tracking/files/run-start.ts";
import { withoutSecrets } from "../../src/values/without-secrets.ts";
import { invalid, optionsIn, runFolder, samplesOf, valid } from "./run-folder.ts";

const linesIn = async (path: string): Promise<unknown[]> =>
  (await Array.fromAsync(readJsonl(path))).map(({ value }) => value);

test("a step is a line as verl writes it; what is no finite number is its text, and read back a number", async () => {
  const directory = await runFolder();
  const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
  tracking.log({ "critic/score/mean": 0.5, "critic/values/mean": NaN, "a/max": -Infinity }, 1);
  tracking.log({ "critic/score/mean": 0.75 }, 2);
  tracking.generations(2, [{ input: "1+1=", output: "2", score: NaN }]);
  await tracking.close();
  expect(await linesIn(join(directory, "metrics.jsonl"))).toEqual([
    {
      step: 1,
      data: { "critic/score/mean": 0.5, "critic/values/mean": "NaN", "a/max": "-Infinity" },
    },
    { step: 2, data: { "critic/score/mean": 0.75 } },
  ]);
  const [read] = (await readRun(directory)).metrics;
  expect(read?.data).toEqual({
    "critic/score/mean": 0.5,
    "critic/values/mean": Number.NaN,
    "a/max": -Infinity,
  });
  expect(await linesIn(join(directory, "generations.jsonl"))).toEqual([
    { step: 2, row: 0, input: "1+1=", output: "2", score: null },
  ]);
});

test("warnings are lines of the timeline", async () => {
  const directory = await runFolder();
  const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
  tracking.warning(4, "the validation fell");
  await tracking.close();
  const warning = { type: "warning", step: 4, message: "the validation fell" };
  expect(await linesIn(join(directory, "timeline.jsonl"))).toContainEqual(warning);
  await appendFile(join(directory, "metrics.jsonl"), '{"step": 4, "data": {}}\n');
  expect((await readRun(directory)).warnings).toEqual([warning]);
});

test("samples: one line for the rewards of a step, and as many as are drawn, over all of its time", async () => {
  const directory = await runFolder();
  const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
  const outcomes = Array.from({ length: 1000 }, (_, index) =>
    index % 100 === 7 ? invalid(`down ${index}`, { cost: 0.5 }) : valid(index + 1, { cost: 0.01 }),
  );
  tracking.samples(3, samplesOf(outcomes));
  tracking.samples(4, samplesOf([valid(20, { cached: true, attempts: 0 })]));
  await tracking.close();
  const { rewards, samples } = await readRun(directory);
  expect(rewards[0]).toMatchObject({
    step: 3,
    samples: 1000,
    drawn: 256,
    cost: expect.closeTo(14.9, 9) as number,
    failures: [{ class: "user-code", code: "SCORE_THREW", count: 10, example: "down 7" }],
  });
  const counted = (line: (typeof rewards)[number]): number =>
    line.latency.reduce((sum, [, count]) => sum + count, 0);
  expect(rewards.map(counted)).toEqual([1000, 0]);
  const drawn = samples.filter(({ step }) => step === 3);
  expect(new Set(drawn.map(({ id }) => id)).size).toBe(256);
  const ends = drawn.map(({ scoredMs }) => scoredMs);
  expect(ends).toEqual(ends.toSorted((a, b) => a - b));
  expect(Math.max(...ends) - Math.min(...ends)).toBeGreaterThan(1900);
  for (const { generatedMs, startedMs, scoredMs } of drawn) {
    expect(startedMs).toBeGreaterThanOrEqual(generatedMs);
    expect(scoredMs).toBeGreaterThanOrEqual(startedMs);
  }
});

test("a run that was killed leaves what it had told, and the resumed one counts each step once", async () => {
  const directory = await runFolder();
  await killedRun(directory);
  // As if the kill had come in the middle of a line.
  await appendFile(join(directory, "metrics.jsonl"), '{"step":3,"da');
  const resumed = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
  resumed.phase({ step: 2, name: "gen", startMs: 20, endMs: 21 });
  resumed.log({ score: 20 }, 2);
  resumed.log({ score: 30 }, 3);
  await resumed.close();
  const { metrics, phases } = await readRun(directory);
  expect(metrics).toEqual([
    { step: 1, data: { score: 1 } },
    { step: 2, data: { score: 20 } },
    { step: 3, data: { score: 30 } },
  ]);
  expect(phases).toEqual([
    { type: "phase", step: 1, name: "gen", startMs: 1, endMs: 2 },
    { type: "phase", step: 2, name: "gen", startMs: 20, endMs: 21 },
  ]);
});

test("a run that goes on may warn of the step that it goes on from: that step keeps its times, and its warning comes once", async () => {
  const directory = await runFolder();
  const optionsOf = optionsIn(directory, { logger: ["file"] });
  await using first = await Tracking.open(optionsOf);
  for (const step of [20, 21]) {
    first.phase({ step, name: "gen", startMs: step, endMs: step + 1 });
    first.log({ score: 1 }, step);
    first.warning(step, `step ${step} fell`);
  }
  await first.close();
  await using second = await Tracking.open(optionsOf);
  second.warning(20, "step 20 fell");
  await second.close();
  const { phases, warnings } = await readRun(directory);
  expect(phases.map(({ step }) => step)).toEqual([20, 21]);
  expect(warnings.map(({ message }) => message)).toEqual(["step 20 fell"]);
});

test("a run that goes on validates the step that it goes on from: that step keeps its metrics", async () => {
  const directory = await runFolder();
  const tell = async (...told: readonly (readonly [number, object])[]): Promise<void> => {
    const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
    for (const [step, metrics] of told) tracking.log(metrics as Record<string, number>, step);
    await tracking.close();
  };
  const first = { score: 1, "val-core/a/mean@1": 0.25 };
  await tell([20, first], [21, { ...first, killed: 1 }], [22, first]);
  await tell([20, { "val-core/a/mean@1": 0.5 }], [21, { score: 2 }]);
  const { metrics } = await readRun(directory);
  expect(metrics).toEqual([
    { step: 20, data: { score: 1, "val-core/a/mean@1": 0.5 } },
    { step: 21, data: { score: 2 } },
  ]);
});

test("what is told of a step after the next one was told belongs to it, also where the run was killed behind it", async () => {
  const directory = await runFolder();
  const tell = async (...told: readonly (readonly [number, object])[]): Promise<void> => {
    const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
    for (const [step, metrics] of told) tracking.log(metrics as Record<string, number>, step);
    await tracking.close();
  };
  const own = (score: number): object => ({ score });
  const times = { "timing_s/save_checkpoint": 3, "perf/throughput": 4 };
  const validation = { "val-core/a/mean@1": 0.25 };
  await tell([20, own(1)], [21, own(2)], [20, validation], [21, times], [22, own(3)]);
  const { metrics } = await readRun(directory);
  expect(metrics).toEqual([
    { step: 20, data: { score: 1, ...validation } },
    { step: 21, data: { score: 2, ...times } },
    { step: 22, data: { score: 3 } },
  ]);
  // Killed behind the validation of 21, and gone on with from 20: 22 has not been.
  await tell([21, validation]);
  await tell([21, own(5)]);
  expect((await readRun(directory)).metrics).toEqual([
    { step: 20, data: { score: 1, ...validation } },
    { step: 21, data: { score: 5 } },
  ]);
});

test("a run that begins anew in the folder of a longer one has nothing of it", async () => {
  const directory = await runFolder();
  const tell = async (steps: number, score: number, withValidation: boolean): Promise<void> => {
    const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
    if (withValidation) tracking.log({ "val-core/a/mean@1": score }, 0);
    for (let step = 1; step <= steps; step += 1) {
      tracking.phase({ step, name: "gen", startMs: score + step, endMs: score + step + 1 });
      tracking.samples(step, samplesOf([valid(1)], score));
      tracking.log({ score }, step);
    }
    await tracking.close();
  };
  await tell(5, 100, true);
  for (const withValidation of [true, false]) {
    await tell(2, 200, withValidation);
    const run = await readRun(directory);
    expect(run.metrics).toEqual([
      ...(withValidation ? [{ step: 0, data: { "val-core/a/mean@1": 200 } }] : []),
      { step: 1, data: { score: 200 } },
      { step: 2, data: { score: 200 } },
    ]);
    expect(run.phases.map(({ startMs }) => startMs)).toEqual([201, 202]);
    expect(run.samples.map(({ id }) => id)).toEqual(["200-0", "200-0"]);
    expect(run.rewards.map(({ step }) => step)).toEqual([1, 2]);
  }
});

test("a file that is made anew with more bytes shows nothing of the old one", async () => {
  const directory = await runFolder();
  const path = join(directory, "metrics.jsonl");
  const lineOf = (step: number, score: number): string =>
    `${JSON.stringify({ step, data: { "critic/score/mean": score } })}\n`;
  await mkdir(directory, { recursive: true });
  await writeFile(path, [1, 2, 3].map((step) => lineOf(step, 0.1)).join(""));
  const run = new FollowedRun(directory);
  await run.refresh();
  const before = run.curves;
  // Both exist at once, so that the new one is another file.
  const made = `${path}.new`;
  await writeFile(made, [1, 2, 3, 4, 5].map((step) => lineOf(step, 0.9)).join(""));
  await rename(made, path);
  await run.refresh();
  const fresh = new FollowedRun(directory);
  await fresh.refresh();
  expect(run.curves).toEqual(fresh.curves);
  expect(run.curves).not.toEqual(before);
  expect(JSON.stringify(run.curves)).not.toContain("0.1");
  await rm(path);
  await run.refresh();
  expect(run.lastStep).toBe(-1);
});

test("a file that is written anew in place shows nothing of the old one", async () => {
  const directory = await runFolder();
  const path = join(directory, "metrics.jsonl");
  const linesOf = (score: number, ...steps: number[]): string =>
    steps.map((step) => `${JSON.stringify({ step, data: { score } })}\n`).join("");
  await writeFile(path, linesOf(0.1, 1, 2));
  const run = new FollowedRun(directory);
  await run.refresh();
  const { ino } = await stat(path);
  const curves = [
    [0.9, 1, 2, 3],
    // As long as before.
    [0.5, 1, 2, 3],
  ] as const;
  for (const [score, ...steps] of curves) {
    await writeFile(path, linesOf(score, ...steps));
    await run.refresh();
    expect(run.curves).toEqual({ score: { steps, values: steps.map(() => score) } });
  }
  expect((await stat(path)).ino).toBe(ino);
});

test("curves that grew at each look are those of a run that is read at once, also where a process began again", async () => {
  const directory = await runFolder();
  const path = join(directory, "metrics.jsonl");
  const run = new FollowedRun(directory);
  const lineOf = (step: number, data: object): string => `${JSON.stringify({ step, data })}\n`;
  const parts = [
    Array.from({ length: 1200 }, (_, at) => lineOf(at + 1, { score: at, gone: 1 })),
    [lineOf(1200, { "val-core/a/mean@1": 1 })],
    // It resumed from step 1,000.
    Array.from({ length: 300 }, (_, at) => lineOf(1001 + at, { score: -at, more: at })),
    [lineOf(1, { score: 7 }), lineOf(2, { score: 8 })],
  ];
  for (const [at, part] of parts.entries()) {
    await appendFile(path, part.join(""));
    const before = run.curves["score"];
    await run.refresh();
    const fresh = new FollowedRun(directory);
    await fresh.refresh();
    expect(run.curves, `part ${at}`).toEqual(fresh.curves);
    expect(run.curves["score"]).not.toBe(before);
  }
  expect(run.curves).toEqual({ score: { steps: [1, 2], values: [7, 8] } });
});

test("a validation that a resumed run reports again counts once", async () => {
  const directory = await runFolder();
  const answers = [1, 2].map((score) => ({ input: "1+1=", output: String(score), score }));
  for (const output of ["first", "again"]) {
    await using tracking = await Tracking.open(optionsIn(directory, { logger: ["file"] }));
    const own = answers.map((one) => ({ ...one, output }));
    if (output === "first") tracking.generations(1, own);
    tracking.log({ score: 1 }, 2);
    tracking.generations(2, own);
  }
  const { generations } = await readRun(directory);
  expect(generations.map(({ output }) => output)).toEqual(["again", "again"]);
  const followed = new FollowedRun(directory);
  await followed.refresh();
  const shown = followed.validations.map(({ step, answers: own }) => [step, own.length]);
  expect(shown).toEqual([
    [1, 2],
    [2, 2],
  ]);
});

test("a file that is damaged is an error at each look, and a run again when it was repaired", async () => {
  const directory = await runFolder();
  const lines = [1, 2].map((step) => `${JSON.stringify({ step, data: { score: 1 } })}\n`).join("");
  await writeFile(join(directory, "metrics.jsonl"), lines);
  const path = join(directory, "generations.jsonl");
  await writeFile(path, "null\n");
  const followed = new FollowedRun(directory);
  for (const _ of [1, 2, 3])
    await expect(followed.refresh()).rejects.toThrow(/generations\.jsonl.*line 1 is none of a run/);
  await rm(path);
  await followed.refresh();
  expect(followed.lastStep).toBe(2);
  expect(Object.keys(followed.curves)).toEqual(["score"]);
});

test("how a run was started is in its files, without secrets", async () => {
  const directory = await runFolder();
  const config = {
    trainer: { total_epochs: 2 },
    judge: { api_key: "sk-1", url: "http://me:pw@h/" },
  };
  const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"], config }));
  tracking.log({ score: 1 }, 1);
  await tracking.close();
  const [start] = (await readRun(directory)).starts;
  expect(start).toMatchObject({
    projectName: "maths",
    experimentName: "grpo",
    totalSteps: 4,
    node: process.version,
    command: expect.stringMatching(/^node /) as string,
    config: { trainer: { total_epochs: 2 }, judge: { api_key: "***", url: "http://***@h/" } },
  });
});

test("settings that JSON has no numbers for are texts, and keep no run from starting", async () => {
  const directory = await runFolder();
  const config = {
    rayling: { policy_kwargs: { cap: Infinity, list: [NaN, { low: -Infinity }], seed: 5n } },
  };
  const tracking = await Tracking.open(optionsIn(directory, { logger: ["file"], config }));
  await tracking.close();
  const written = {
    rayling: { policy_kwargs: { cap: "Infinity", list: ["NaN", { low: "-Infinity" }], seed: "5" } },
  };
  expect(await linesIn(join(directory, "timeline.jsonl"))).toMatchObject([{ config: written }]);
});

test("a resume that is refused leaves the files of its run as they are, and one that goes on begins with its start", async () => {
  const directory = await runFolder();
  const options = optionsIn(directory, { logger: ["file"] });
  const first = await Tracking.open(options);
  first.log({ score: 1 }, 1);
  await first.close();
  const timeline = join(directory, "timeline.jsonl");
  const before = await readFile(timeline, "utf8");
  const refused = await Tracking.open(options);
  await refused.close({ error: new Error("other batch size") });
  expect(await readFile(timeline, "utf8")).toBe(before);
  const resumed = await Tracking.open(options);
  resumed.progress({ step: 2, phase: "gen" });
  resumed.log({ score: 2 }, 2);
  await resumed.close();
  expect((await readRun(directory)).starts).toHaveLength(2);
});

test("the commit is found in a checkout, in a worktree of it, and where refs are packed", async () => {
  const base = await runFolder();
  const [one, two] = ["1".repeat(40), "2".repeat(40)];
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(base, path)), { recursive: true });
    await writeFile(join(base, path), text);
  };
  await write("a/.git/HEAD", "ref: refs/heads/main\n");
  await write("a/.git/packed-refs", `# pack-refs\n${one} refs/heads/main\n`);
  await write("a/.git/worktrees/b/HEAD", "ref: refs/heads/side\n");
  await write("a/.git/worktrees/b/commondir", "../..\n");
  await write("a/.git/refs/heads/side", `${two}\n`);
  await write("b/.git", `gitdir: ${join(base, "a/.git/worktrees/b")}\n`);
  await write("c/.git/HEAD", `${one}\n`);
  await mkdir(join(base, "a/deep/er"), { recursive: true });
  expect(await gitCommit(join(base, "a/deep/er"))).toBe(one);
  expect(await gitCommit(join(base, "b"))).toBe(two);
  expect(await gitCommit(join(base, "c"))).toBe(one);
  expect(await gitCommit(base)).toBeUndefined();
});

test.each([
  [["node", "train.ts", "--lr", "1e-3"], "node train.ts --lr 1e-3"],
  [["/usr/bin/node", "a b.ts", "x.api_key=sk-1"], "node 'a b.ts' x.api_key=***"],
  [
    ["node", "t.ts", "--api-key", "sk-1", "--token=t", "--max-tokens", "5"],
    "node t.ts --api-key *** --token=*** --max-tokens 5",
  ],
  [
    ["node", "t.ts", "--nodes", "rayling://abc@host:1", "data.prompt_key=q"],
    "node t.ts --nodes rayling://***@host:1 data.prompt_key=q",
  ],
  [
    ["node", "t.ts", "r.kwargs={judge: {api_key: sk-1, n: 2}, 'my_key': 'a, b', keys: [k]}"],
    String.raw`node t.ts 'r.kwargs={judge: {api_key: ***, n: 2}, '\''my_key'\'': ***, keys: [k]}'`,
  ],
  [
    ["node", "t.ts", '--json={"apiKey":"a\\"b}","api_keys":["c","d"],"max_tokens":5}'],
    `node t.ts '--json={"apiKey":***,"api_keys":***,"max_tokens":5}'`,
  ],
  [
    ["node", "t.ts", "a.credentials.user=me", "u=http://h/?q=1&api_key=sk-1", "--env=A_TOKEN=t"],
    "node t.ts a.credentials.user=*** 'u=http://h/?q=1&api_key=***' --env=A_TOKEN=***",
  ],
  [["node", "t.ts", "headers=[[x, found-in-settings-1]]"], "node t.ts 'headers=[[x, ***-1]]'"],
])("a command is shown as it was typed, without secrets: %j", (argv, text) => {
  expect(commandText(argv, ["t", "found-in-settings"])).toBe(text);
});

test("settings lose what is named as a key, token or password, however it is spelt, and nothing else", () => {
  const names =
    "api_key apiKey OPENAI_API_KEY openaiAPIKey x-api-key judge_key key token hf_token api_tokens client_secret db_password credentials Cookie".split(
      " ",
    );
  const secrets = Object.fromEntries(
    names.map((name, at) => [name, [`sk-${at}`, at, [`sk-${at}`], { user: "me" }][at % 4]]),
  );
  const shown = JSON.stringify(withoutSecrets({ deep: [{ kwargs: secrets }] }));
  expect(shown).not.toMatch(/sk-|"me"|\d/);
  // All that a configuration has of its own is shown as it is.
  const own = verlTree(loadTrainerConfig({ name: "ppo_trainer" }));
  expect(withoutSecrets(own)).toEqual(own);
});

test("a folder without a run, and a file of something else, are refused by name", async () => {
  const directory = await runFolder();
  await expect(readRun(directory)).rejects.toMatchObject({ code: "TRACKING_FILES" });
  await appendFile(join(directory, "metrics.jsonl"), "[1]\n");
  await expect(readRun(directory)).rejects.toThrow(/metrics\.jsonl.*line 1 is none of a run/);
});

test("a file that cannot be written any more is warned of, and training goes on", async () => {
  const warnings: string[] = [];
  const directory = await runFolder();
  // Every write to it fails as on a full disk.
  await symlink("/dev/full", join(directory, "metrics.jsonl"));
  const tracking = await Tracking.open(
    optionsIn(directory, { logger: ["file"], onWarning: ({ message }) => warnings.push(message) }),
  );
  for (let step = 1; step <= 5; step += 1) tracking.log({ score: step }, step);
  await tracking.close();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/^tracking "file": .*ENOSPC/);
});

/** Logs two steps, says so, and is killed without a chance to close anything. */
async function killedRun(directory: string): Promise<void> {
  const script = `
    import { Tracking } from "@rayling/trainer";
    import { readFileSync, watch } from "node:fs";
    const files = ${JSON.stringify([join(directory, "metrics.jsonl"), join(directory, "timeline.jsonl")])};
    const tracking = await Tracking.open({ logger: "file", projectName: "p", experimentName: "e", directory: ${JSON.stringify(directory)} });
    tracking.phase({ step: 1, name: "gen", startMs: 1, endMs: 2 });
    tracking.log({ score: 1 }, 1);
    tracking.phase({ step: 2, name: "gen", startMs: 3, endMs: 4 });
    tracking.log({ score: 2 }, 2);
    const killWhenThere = () => {
      const areThere = files.every((file) => readFileSync(file, "utf8").split("\\n").length > 2);
      if (areThere) process.kill(process.pid, "SIGKILL");
    };
    for (const file of files) watch(file, killWhenThere);
    killWhenThere();
  `;
  const { signal } = await new Promise<{ signal: unknown }>((resolve) => {
    const child = execFile(process.execPath, ["--input-type=module", "-e", script], {
      cwd: import.meta.dirname,
    });
    child.on("exit", (_, by) => resolve({ signal: by }));
  });
  expect(signal).toBe("SIGKILL");
  expect(await readFile(join(directory, "metrics.jsonl"), "utf8")).toContain('"step":2');
}
