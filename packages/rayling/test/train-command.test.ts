/** `rayling train` and `rayling data`, as a user runs them: what they print, what they leave, how they end. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { WriterMark } from "@rayling/reward-loop";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { fileOf, folder, inProcess, shown, start } from "./command.ts";

describe("rayling train", () => {
  /** A policy that learns nothing and costs nothing. */
  const timed = ["rayling.policy=timed", "rayling.policy_kwargs={seconds: {}}"];

  /** Two steps of the quickstart, in a folder of its own. */
  async function quickstart(): Promise<{ files: string; overrides: string[] }> {
    const files = await folder();
    const overrides = [
      `rayling.directory=${files}/run`,
      `trainer.default_local_dir=${files}/checkpoints`,
      "trainer.logger=file",
      "trainer.total_training_steps=2",
      "trainer.save_freq=1",
      "trainer.resume_mode=auto",
      "rayling.warm_start_steps=0",
      "rayling.task_kwargs.high=12",
      "data.train_batch_size=4",
      "actor_rollout_ref.actor.ppo_mini_batch_size=2",
    ];
    return { files, overrides };
  }

  test("trains, ends with a table, and goes on with its checkpoints; its files become a page and a trace", async () => {
    const { files, overrides } = await quickstart();
    const warm = "rayling.warm_start_steps=3";
    const started = start("train", "--config-name", "grpo", ...overrides, warm);
    const stays = /^supervised warm-up: 3 steps took (?:\d+m )?\d+ ?s$/m;
    await shown(started, stays, "stderr");
    const first = await started.ended;
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toMatch(/^steps +2$/m);
    expect(first.stdout).toContain(join(files, "run"));
    expect(first.stdout).toContain(join(files, "checkpoints"));
    expect(first.stdout).toMatch(/^rewards +all 64 were given, none failed$/m);
    expect(first.stdout).toMatch(
      /^verdict +(?:(?:worse|better) than|as) before training: accuracy [\d.]+ % before, [\d.]+ % after$/m,
    );
    const more = [...overrides, "trainer.total_training_steps=3", "trainer.nnodes=2"];
    const second = await inProcess("train", "--config-name", "grpo", ...more);
    expect(second).toMatchObject({ code: 0 });
    expect(second.stderr).toBe("not used: trainer.nnodes (they are about verl's engines)\n");
    expect(second.stdout).toMatch(/^steps +3, 1 of them in this process$/m);
    expect(second.stdout).toMatch(/^rewards +all 32 of this process were given, none failed$/m);
    expect(second.stdout).toMatch(/^ {2}npx -y pnpm@12 rayling report .+\/run$/m);
    expect(second.stdout).toMatch(
      /^ {2}npx .+ trainer\.resume_mode=auto trainer\.total_training_steps=6$/m,
    );
    const metrics = await readFile(join(files, "run/metrics.jsonl"), "utf8");
    const steps = metrics
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { step: number }).step);
    // Each step was trained once: the second run began behind the first.
    expect(steps.filter((step) => step > 0 && step < 3)).toEqual(expect.arrayContaining([1, 2]));
    expect(steps.at(-1)).toBe(3);
    const directory = join(files, "run");
    const made = await inProcess("report", directory, "--title", "A run", "--trace");
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(made.stdout).toBe(
      `report  ${join(directory, "report.html")}\ntrace   ${join(directory, "trace.json")}\n`,
    );
    expect(await readFile(join(directory, "report.html"), "utf8")).toContain(
      "<title>A run</title>",
    );
    expect(JSON.parse(await readFile(join(directory, "trace.json"), "utf8"))).not.toEqual([]);
    const elsewhere = join(files, "page.html");
    const again = await inProcess("report", directory, "--out", elsewhere);
    expect(again.stdout).toBe(`report  ${elsewhere}\n`);
    // A folder in which runs lie is a page of all of them.
    const all = await inProcess("report", files, directory);
    expect(all).toMatchObject({ code: 0, stdout: `report  ${join(files, "report.html")}\n` });
    const none = await inProcess("report", join(files, "checkpoints"));
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toMatch(/^rayling: tracking ".*": .+\n$/);
  });

  test("trains on chats with NaN in a packed file, and a dry run says what it finds there", async () => {
    const { files, overrides } = await quickstart();
    const chats = Array.from({ length: 8 }, (_, n) => [
      `{"messages": [{"role": "user", "content": "${n} + 1 ="}, {"role": "assistant", "content": "no"}]`,
      `"gold": {"n": "${n + 1}"}, "extra_info": {"logprob": NaN}}\n`,
    ]);
    const data = join(files, "chats.jsonl.gz");
    await writeFile(data, gzipSync(chats.map((parts) => parts.join(", ")).join("")));
    const reward = join(files, "reward.mjs");
    await writeFile(
      reward,
      "export const computeScore = ({ dataSource, groundTruth, extraInfo }) => Number(dataSource === 'chats' && /^[1-8]$/.test(groundTruth) && Number.isNaN(extraInfo.logprob));",
    );
    const dumps = join(files, "dumps");
    const own = [
      "--config-name",
      "grpo",
      ...overrides,
      ...timed,
      "rayling.task=null",
      `data.train_files=${data}`,
      "data.val_files=null",
      "data.truth_key=gold.n",
      "data.allow_nan=true",
      `reward.custom_reward_function.path=${reward}`,
      `trainer.rollout_data_dir=${dumps}`,
    ];
    const planned = await inProcess("train", "--dry-run", ...own);
    expect(planned).toMatchObject({ code: 0, stderr: "" });
    expect(planned.stdout).toMatch(
      /^prompts +8 rows: prompt in messages, ground truth in gold\.n, data source chats \(the file's name\)$/m,
    );
    expect(await inProcess("train", ...own)).toMatchObject({ code: 0, stderr: "" });
    const dump = (await readFile(join(dumps, "2.jsonl"), "utf8")).trim().split("\n");
    const scores = dump.map((line) => (JSON.parse(line) as { readonly score: unknown }).score);
    expect(new Set(scores)).toEqual(new Set([1]));
    const other = await WriterMark.put(join(dumps, "rayling-training"));
    const busy = await inProcess("train", ...own);
    expect(busy).toMatchObject({ code: 2, stdout: "" });
    expect(busy.stderr).toContain(`trainer.rollout_data_dir: ${dumps} is being trained in by this`);
    await other.remove();
    const refused = await inProcess("train", "--dry-run", ...own, "data.allow_nan=false");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(`${data}:1: the line is not valid JSON: NaN is no JSON`);
  });

  test("serves its metrics for Prometheus while it trains, to whoever sends the token; stops at Ctrl-C with 130, and leaves no process", async () => {
    const { overrides } = await quickstart();
    const served = [
      ...overrides,
      ...timed,
      "trainer.logger=[console,prometheus]",
      "trainer.total_training_steps=100000",
    ];
    const refused = await inProcess("train", "--config-name", "grpo", ...served);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(
      "rayling.metrics_port: is null, and trainer.logger has prometheus",
    );
    const started = start("train", "--config-name", "grpo", ...served, "rayling.metrics_port=0");
    const told = /^metrics: (\S+) with Authorization: (Bearer \S+)$/m;
    const [, url = "", authorization = ""] = await shown(started, told, "stderr");
    expect((await fetch(url)).status).toBe(401);
    let text = "";
    while (!text.includes("critic/score/mean")) {
      text = await (await fetch(url, { headers: { authorization } })).text();
    }
    expect(text).toMatch(/^ray_train_metric\{.*metric="critic\/score\/mean"/m);
    // The checkpoint of the step before is there.
    await shown(started, /^step \d+\/100000, /m);
    started.child.kill("SIGINT");
    const { code, stderr } = await started.ended;
    expect(code).toBe(130);
    expect(stderr).toMatch(/^rayling: stopped; checkpoints in \S+checkpoints\n$/m);
  });

  test("prints its configuration, which is read again", async () => {
    const { code, stdout } = await inProcess(
      "train",
      "--config-name",
      "streaming",
      "--print-config",
      "data.train_batch_size=64",
    );
    expect(code).toBe(0);
    expect(parse(stdout)).toMatchObject({
      data: { train_batch_size: 64 },
      rayling: { schedule: "streaming" },
    });
  });

  test("prints its plan, with the sizes of the data and the expected time", async () => {
    const rows = Array.from({ length: 20 }, (_, index) => ({
      prompt: [{ role: "user", content: String(index) }],
      data_source: "own",
      reward_model: { ground_truth: "" },
    }));
    const { code, stdout } = await inProcess(
      "train",
      "--dry-run",
      `data.train_files=${await fileOf(rows)}`,
      "data.val_files=null",
      "data.train_batch_size=8",
      "actor_rollout_ref.actor.ppo_mini_batch_size=4",
      "trainer.total_epochs=3",
      "algorithm.adv_estimator=grpo",
      "+mini_batch_pipeline=True",
      "+max_concurrency=2",
      "rayling.expected_seconds={gen: 10, update_actor: 4, reward: 5}",
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^steps +6 \(2 in an epoch\)$/m);
    expect(stdout).toMatch(
      /^prompts +20 rows: prompt in prompt, ground truth in reward_model\.ground_truth$/m,
    );
    // Rewards 20 s: half of them at 20, all at 30, and an update of 2 s each: 32, and 34 one after the other.
    expect(stdout).toMatch(/^expected step +32\.0 s, 5\.9 % less than sync \(34\.0 s\)$/m);
  });

  test.each([
    [["--config-name", "grop"], /grop: there is no such configuration.*did you mean grpo\?/],
    [["--config-dir", "/no/such"], /\/no\/such: cannot be read/],
    [
      ["--dry-run", "+mini_batch_pipeline=True"],
      /algorithm\.adv_estimator: is gae, which needs .*; did you mean algorithm\.adv_estimator=grpo\?/,
    ],
    [
      ["--config-name", "grpo", "--dry-run", "algorithm.rollout_correction.rollout_rs=token_k9"],
      /algorithm\.rollout_correction\.rollout_rs: there is no rollout_rs "token_k9"; there are /,
    ],
    [
      [
        "--config-name",
        "grpo",
        "algorithm.adv_estimator=grpo_passk",
        "actor_rollout_ref.rollout.n=1",
      ],
      /actor_rollout_ref\.rollout\.n: pass@k needs at least 2 rows of each group/,
    ],
    [["--dry-run"], /gsm8k\/train\.parquet: .*ENOENT/],
    [["data.train_batchsize=4"], /did you mean data\.train_batch_size\?/],
    [["rayling.task=arithmetic", "rayling.policy=./no.ts"], /rayling\.policy: is none of tiny/],
    [["--config-name", "grpo", "reward.custom_reward_function.path=./no.ts"], /no\.ts.*not found/],
    [
      [
        "--config-name",
        "grpo",
        "trainer.resume_mode=resume_path",
        "trainer.resume_from_path=/no/x",
      ],
      /resume_from_path: is \/no\/x: must be the path of a folder global_step_N/,
    ],
    [["--nonsense"], /unknown option/],
  ])("%j is wrong input: one line, and 2", async (flags, message) => {
    const { code, stdout, stderr } = await inProcess("train", ...flags);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });
});

describe("rayling data gsm8k", () => {
  test("writes verl's rows", async () => {
    const input = await fileOf([{ question: "How many?", answer: "#### 1,200" }]);
    const out = join(await folder(), "made/train.jsonl");
    const { code, stdout } = await inProcess(
      "data",
      "gsm8k",
      input,
      "--out",
      out,
      "--split",
      "test",
      "--instruction",
      "Think.",
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: `1 rows in ${out}\n` });
    expect(JSON.parse(await readFile(out, "utf8"))).toMatchObject({
      prompt: [{ role: "user", content: "How many? Think." }],
      reward_model: { ground_truth: "1200" },
      extra_info: { split: "test", index: 0 },
    });
  });

  test.each([
    [[], /required option '--out/],
    [["x.jsonl"], /required option '--out/],
    [["/no/such.jsonl", "--out", "/tmp/never.jsonl"], /\/no\/such\.jsonl: ENOENT/],
  ])("%j is wrong input", async (flags, message) => {
    const { code, stderr } = await inProcess("data", "gsm8k", ...flags);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});
