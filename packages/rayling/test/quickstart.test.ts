/** `rayling quickstart`: both schedules are trained from the same start, and it ends in one comparison, one page and what is next. */

import { existsSync } from "node:fs";
import { readFile, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folder, inProcess, shown, start, startIn } from "./command.ts";
import { slowness } from "../src/cli/train/quickstart-introduction.ts";
import type { QuickstartFlags } from "../src/cli/train/quickstart-introduction.ts";
import { summaryLines } from "../src/cli/train/quickstart-summary.ts";
import { inFull, sized } from "../../../test/fixtures/suite.ts";

test("a short one: comparison, page, traces, in lines that are short and a folder of its own", async () => {
  const directory = await folder();
  const out = join(directory, "runs/quickstart/latest");
  const steps = sized({ gate: 1, full: 2 });
  const flags = ["--steps", String(steps), "--warm-steps", "2", "--latency", "4"];
  const { code, stdout } = await startIn(directory, "quickstart", ...flags).ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Warm-up: 25 supervised steps, [\d.]+ % of some new problems right$/m);
  expect(stdout).toMatch(
    /^Warm-up: done, accuracy [\d.]+ % on new problems \([\d.]+ % by the likeliest answers\)$/m,
  );
  expect(stdout).toMatch(/^In the lines of steps: score is .+ accuracy is .+ waited is .+\.$/m);
  expect(stdout).toMatch(/^GRPO, one-step-off-policy \(2 of 2\): /m);
  const last = `step ${steps}/${steps}`;
  expect(stdout).toMatch(new RegExp(`^${last}, accuracy [\\d.]+ %$`, "m"));
  const answers = (512 * steps).toLocaleString("en-US");
  expect(stdout).toContain(`\nThe judge scored all ${answers} answers; none failed.\n`);
  const said = `^Training: ${steps} steps? under each schedule, about (?:\\d+m )?\\d+ ?s more\\.$`;
  expect(stdout).toMatch(new RegExp(said, "m"));
  expect(stdout).toMatch(new RegExp(`^${last}, score `, "m"));
  expect(stdout).toMatch(/^sync +[\d.]+ s +[\d.]+ % ± [\d.]+ +[\d.]+ % +[\d.]+ s +[\d.]+ %$/m);
  expect(stdout).toMatch(/^one-step-off-policy +[\d.]+ s +[\d.]+ % ± /m);
  expect(stdout).toMatch(/^one-step-off-policy took \d+ % (?:less|more) time than sync, /m);
  const page = join(out, "report.html");
  expect(stdout).toContain(join("runs/quickstart", await readlink(out), "report.html"));
  expect(await readFile(page, "utf8")).toContain("one-step-off-policy");
  const commands = stdout.slice(stdout.indexOf("What next")).match(/^ {2}npx .+$/gm);
  expect(commands).toHaveLength(3);
  const lines = stdout.split("\n").filter((line) => line.startsWith("step "));
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
  for (const schedule of ["sync", "one-step-off-policy"]) {
    const trace = await readFile(join(out, schedule, "trace.json"), "utf8");
    expect(JSON.parse(trace)).toBeTypeOf("object");
    const metrics = await readFile(join(out, schedule, "metrics.jsonl"), "utf8");
    const validated = metrics
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { step: number; data: Record<string, number> })
      .filter(({ data }) => "val-core/arithmetic/acc/mean@1" in data);
    expect(validated.map(({ step }) => step)).toEqual([0, steps]);
  }
});

test.runIf(
  inFull(
    "it trains again; train-command.test.ts stops a training, which says where its checkpoints are",
  ),
)("one that is stopped says where its steps are", async () => {
  const out = join(await folder(), "runs");
  const short = ["--warm-steps", "2", "--latency", "4", "--schedule", "sync", "--out", out];
  const flags = ["--steps", "100000", ...short];
  const started = start("quickstart", ...flags);
  await shown(started, /^step 2\/100000, /m);
  started.child.kill("SIGINT");
  const { code, stderr } = await started.ended;
  expect(code).toBe(130);
  expect(stderr).toContain(
    `The steps so far are in ${out}; their page is ${join(out, "report.html")}`,
  );
  expect(stderr).toMatch(/rayling: stopped\n$/);
  expect(existsSync(join(out, "report.html"))).toBe(true);
});

test("what did harm is said", () => {
  const run = {
    schedule: "sync",
    steps: 60,
    seconds: 10,
    accuracy: 0.3,
    greedyAccuracy: 0.5,
    exposedWaitSeconds: 5,
    slotsBusy: 0.5,
    samples: 100,
    invalid: 3,
  } as const;
  const before = { accuracy: 0.4, greedyAccuracy: 0.6, problems: 100, latencyMs: 40 };
  const lines = summaryLines({ ...before, runs: [run] }, { page: "p", seconds: 20 });
  expect(lines.join("\n")).toContain("40.0 % ± 9.6");
  const own = lines.slice(0, lines.indexOf("What next"));
  expect(Math.max(...own.map(({ length }) => length))).toBeLessThanOrEqual(80);
  // Every column that is no plain word is explained.
  expect(lines.join("\n")).toMatch(/^judge busy: .+\.$/m);
  // It precedes all figures.
  expect(lines[2]).toBe("warning: sync is below the warm-up: this training did harm.");
  expect(lines).toContain("warning: 3 of 100 answers got no score from the judge.");
});

test("a machine that is slower than promised is told how long it takes, where the flags ask for no more", () => {
  const flags = { seed: 1, warmSteps: 1500, format: "table" } as const;
  expect(slowness(flags, 90)).toBeUndefined();
  const line = "This machine is busy or slow, so about 4m 09s in all in place of 90 s.";
  expect(slowness(flags, 248.7)).toBe(line);
  const schedule = ["sync", "streaming", "one-step-pipeline"] as const;
  const asking: readonly Partial<QuickstartFlags>[] = [
    { steps: 500 },
    { latency: 5000 },
    { schedule },
  ];
  for (const more of asking) {
    expect(slowness({ ...flags, ...more }, 248.7)).toBeUndefined();
  }
});

test("what the flags get wrong is one clear line, before anything is introduced", async () => {
  const full = await folder();
  await writeFile(join(full, "kept"), "");
  const wrong = [
    [
      ["--schedule", "sink"],
      "option '--schedule <name...>' argument 'sink' is invalid. Allowed choices are sync, one-step-off-policy, mini-batch-pipeline, one-step-pipeline, streaming.",
    ],
    [
      ["--schedule", "sync", "streaming", "sync"],
      "--schedule has sync twice: each schedule is trained once.",
    ],
    [["--out", full], `--out ${full} is not empty: give another folder, or remove it.`],
  ] as const;
  for (const [flags, message] of wrong) {
    const { code, stderr, stdout } = await inProcess("quickstart", ...flags);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr: `rayling: ${message}\n`,
    });
  }
});
