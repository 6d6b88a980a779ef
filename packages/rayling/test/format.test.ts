/** `--format json` on every command: its answer as data, and nothing else on standard output. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { fileOf, folder, inProcess, rayling, shown, start } from "./command.ts";
import type { Ended } from "./command.ts";
import { driver, json, ownDirectory } from "./driver.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

/** Their output is that of a script, and a script. */
const without: ReadonlySet<string> = new Set(["run", "complete", "help"]);

/** Words of a command; those of groups, as `rewards`, are in their help. */
async function commandsIn(group: readonly string[]): Promise<string[][]> {
  const { stdout } = await inProcess(...group, "--help");
  const groups: ReadonlySet<string> = new Set(["rewards", "data"]);
  const commands = stdout.replace(/^Arguments:$.*?(?=^Options:$)/ms, "");
  const names = [...commands.matchAll(/^ {2}([a-z][a-z0-9-]+) /gm)].map((match) => match[1] ?? "");
  const found: string[][] = [];
  for (const name of names.filter((one) => !without.has(one))) {
    const own = [...group, name];
    if (group.length === 0 && groups.has(name)) found.push(...(await commandsIn(own)));
    else found.push(own);
  }
  return found;
}

/** The answer, from a command in this process. */
async function answerOf(...args: readonly string[]): Promise<unknown> {
  return parsed(await inProcess(...args, "--format", "json"));
}

function parsed({ code, stdout, stderr }: Pick<Ended, "code" | "stdout" | "stderr">): unknown {
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

test("every command has the flag, but those whose output is another program's", async () => {
  const commands = await commandsIn([]);
  expect(commands.length).toBeGreaterThan(22);
  const lacking: string[] = [];
  for (const command of commands) {
    const { stdout } = await inProcess(...command, "--help");
    const flags = stdout.replaceAll(/\s+/g, " ");
    if (!/--format <format> .*?\(choices: "table", "json", "yaml"/.test(flags)) {
      lacking.push(command.join(" "));
    }
  }
  expect(lacking).toEqual([]);
});

test("new, data and cert answer with what they made", async () => {
  const place = await folder();
  const project = join(place, "my-judge");
  const made = (await answerOf("new", project)) as { readonly files: readonly string[] };
  expect(made).toMatchObject({ folder: project, name: "my-judge" });
  expect(made.files).toEqual(expect.arrayContaining(["package.json", "judge.ts", ".gitignore"]));
  const lines = await fileOf([{ question: "2 + 2?", answer: "It is\n#### 4" }]);
  const out = join(place, "rows.jsonl");
  expect(await answerOf("data", "gsm8k", lines, "--out", out)).toEqual({ rows: 1, out });
  const flags = ["--authority", place, "--host", "grader", "--days", "2"];
  expect(await answerOf("cert", ...flags)).toEqual({
    folder: place,
    hosts: ["grader"],
    validTo: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
    madeAuthority: true,
  });
});

test("commands for a driver answer with rows, and logs with a line each", async () => {
  await ownDirectory();
  const session = await driver({ taskEvents: true, isolation: "shared" });
  const out = join(await folder(), "trace.json");
  expect(await json("timeline", "--out", out)).toEqual({
    events: (JSON.parse(await readFile(out, "utf8")) as unknown[]).length,
    out,
  });
  const logs = await inProcess("logs", "--format", "json", "--tail", "1");
  expect(JSON.parse(logs.stdout)).toMatchObject({ stream: "stdout", text: "from a task" });
  const documents = await inProcess("logs", "--format", "yaml");
  expect(parseAllDocuments(documents.stdout).length).toBeGreaterThan(1);
  expect(await json("kill", "waiting")).toMatchObject({ className: "Idle", state: "DEAD" });
  expect(await json("stop")).toMatchObject({ pid: session.pid, end: "ended" });
});

describe("rayling train", () => {
  const small = [
    "--config-name",
    "grpo",
    "trainer.total_training_steps=2",
    "rayling.policy=timed",
    "rayling.policy_kwargs={seconds: {}}",
    "rayling.warm_start_steps=0",
    "rayling.task_kwargs.high=12",
    "data.train_batch_size=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=2",
  ];

  test("the plan and the configuration are data", async () => {
    expect(await answerOf("train", "--dry-run", ...small)).toMatchObject({
      totalSteps: 2,
      promptsPerStep: 4,
    });
    const yaml = await inProcess("train", "--print-config", ...small);
    expect(await answerOf("train", "--print-config", ...small)).toEqual(parse(yaml.stdout));
  });

  test("the end is data, and what steps and reward functions print goes elsewhere", async () => {
    const files = await folder();
    const reward = join(files, "reward.mjs");
    await writeFile(
      reward,
      "export function computeScore() { console.log('from the reward'); return 1; }\n",
    );
    const { stderr, ...ended } = await rayling(
      "train",
      ...small,
      `rayling.directory=${files}/run`,
      `trainer.default_local_dir=${files}/checkpoints`,
      `reward.custom_reward_function.path=${reward}`,
      "trainer.save_freq=2",
      "--format",
      "json",
    );
    expect(parsed({ ...ended, stderr })).toMatchObject({
      steps: 2,
      warnings: [],
      lastStep: { "training/global_step": 2 },
      directory: join(files, "run"),
      checkpoints: join(files, "checkpoints"),
    });
    expect(stderr).toContain("from the reward");
    expect(stderr).toMatch(/^step 2\/2, /m);
    const report = await answerOf("report", join(files, "run"), "--trace");
    expect(report).toEqual({
      report: join(files, "run/report.html"),
      traces: [join(files, "run/trace.json")],
    });
  });
});

test.runIf(
  inFull(
    "it trains; `rayling train` above keeps its course out of its data in the same way, and quickstart.test.ts has the comparison",
  ),
)("quickstart: the comparison is data, and its course goes elsewhere", async () => {
  const out = join(await folder(), "runs");
  const flags = ["--steps", "2", "--warm-steps", "2", "--latency", "4", "--out", out];
  const { stderr, ...ended } = await rayling("quickstart", ...flags, "--format", "json");
  expect(parsed({ ...ended, stderr })).toMatchObject({
    problems: expect.any(Number) as number,
    runs: [
      { schedule: "sync", steps: 2 },
      { schedule: "one-step-off-policy", steps: 2 },
    ],
    page: join(out, "report.html"),
  });
  expect(stderr).toMatch(/^GRPO, sync \(1 of \d\): /m);
});

test("score: what a reward function prints goes elsewhere", async () => {
  const reward = join(await folder(), "reward.mjs");
  await writeFile(
    reward,
    "export function computeScore() { console.log('from the reward'); return 1; }\n",
  );
  const solutions = await fileOf([{ prompt: "2 + 2?", response: "4", ground_truth: "4" }]);
  const out = join(await folder(), "rewards.jsonl");
  const flags = ["--reward", reward, "--out", out, "--workers", "1", "--format", "json"];
  const { stderr, ...ended } = await rayling("score", solutions, ...flags);
  expect(parsed({ ...ended, stderr })).toMatchObject({ samples: 1, invalid: 0, log: out });
  expect(stderr).toContain("from the reward");
  expect(await answerOf("rewards", "export", out, "--as", "csv")).toMatchObject({
    rows: 1,
    as: "csv",
  });
});

test("commands that go on say where they are in a line", async () => {
  const reward = join(await folder(), "reward.mjs");
  await writeFile(reward, "export const computeScore = () => 1;\n");
  const flags = [
    "--reward",
    reward,
    "--workers",
    "1",
    "--listen",
    "127.0.0.1:0",
    "--format",
    "json",
  ];
  const started = start("serve", ...flags);
  const [line] = await shown(started, /^\{.*\}\n/);
  const { url } = JSON.parse(line) as { readonly url: string };
  expect((await fetch(`${url}/openapi.json`)).status).toBe(200);
  started.child.kill("SIGTERM");
  expect(await started.ended).toMatchObject({ code: 0, stdout: line });
});
