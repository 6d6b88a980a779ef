/** The parts of the command that need no process: the judge's latency, the numbers, the bar. */

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WriteStream } from "node:tty";
import { messageOf } from "@rayling/reward-manager-registry/values";
import type { SampleOutcome, ScoredSample } from "@rayling/reward-loop";
import { epochsOf, loadTrainerConfig } from "@rayling/trainer/config";
import { describe, expect, onTestFinished, test } from "vitest";
import { CliError, firstErrorOf } from "../src/cli/cli-error.ts";
import { scoringText } from "../src/cli/judges/judges-introduction.ts";
import {
  count as countOf,
  hostName,
  secondCount,
  settings as settingsOf,
} from "../src/cli/flag-values.ts";
import { replaceFile } from "../src/cli/output/existing-file.ts";
import { duration, grouped, mean, quantile, span } from "../src/cli/output/numbers.ts";
import { ProgressView } from "../src/cli/output/progress-view.ts";
import type { ShownProgress } from "../src/cli/output/progress-view.ts";
import { adviceOn, argsAgain, failureLines } from "../src/cli/score/failure-advice.ts";
import type { FailureCount } from "../src/cli/score/failure-advice.ts";
import type { ScoreOptions } from "../src/cli/score/score-options.ts";
import { checkFailures } from "../src/cli/score/score-command.ts";
import { RunSummary } from "../src/cli/score/run-summary.ts";
import { nextLines, reportText } from "../src/cli/score/score-report.ts";
import { latencyMs } from "../src/cli/score/simulated-judge.ts";
import type { SimulatedJudge } from "../src/cli/score/simulated-judge.ts";
import type { SolutionSample } from "../src/cli/inputs/solutions.ts";
import { PhaseLine } from "../src/cli/output/phase-line.ts";
import { RunPlace } from "../src/cli/train/run-place.ts";
import { endLines } from "../src/cli/train/end/end-lines.ts";
import type { TrainingEnd } from "../src/cli/train/end/training-end.ts";
import { verdictsOf } from "../src/cli/train/end/verdicts.ts";
import { introductionOf, stepWords } from "../src/cli/train/training-introduction.ts";

describe("the simulated latency", () => {
  const judge: SimulatedJudge = {
    reward: { path: "x" },
    latencyMs: [1, 40],
    seed: 1,
    baseDirectory: "/",
  };
  const waits = (seed: number): number[] =>
    Array.from({ length: 10_000 }, (_, index) => latencyMs({ ...judge, seed }, String(index)));

  test("is uniform between its bounds", () => {
    const all = waits(1);
    expect(Math.min(...all)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...all)).toBeLessThan(40);
    for (const share of [0.1, 0.25, 0.5, 0.75, 0.9])
      expect(quantile(all, share)).toBeCloseTo(1 + 39 * share, -0.5);
  });

  test("hangs on the seed and the sample alone", () => {
    expect(waits(1)).toEqual(waits(1));
    const [a, b] = [waits(1), waits(2)];
    expect(a.filter((wait, index) => wait === b[index]).length).toBeLessThan(10);
  });
});

test("what failed first is shown, and not that its closing failed, too", () => {
  const first = new RangeError("no space left");
  // As `await using` makes it, where a Node has no such class, too.
  const both = (suppressed: unknown): Error =>
    Object.assign(new Error("An error was suppressed during disposal"), {
      name: "SuppressedError",
      error: new Error("closing"),
      suppressed,
    });
  expect(firstErrorOf(both(both(first)))).toBe(first);
  expect(firstErrorOf(first)).toBe(first);
  if ("SuppressedError" in globalThis) {
    expect(firstErrorOf(new SuppressedError(new Error("closing"), first))).toBe(first);
  }
});

describe("values of flags", () => {
  test("in seconds fit a timer of milliseconds", () => {
    const seconds = secondCount(0);
    expect([seconds("0"), seconds("300"), seconds("2147482")]).toEqual([0, 300, 2_147_482]);
    for (const text of ["2147483", "2147484", "9999999999", "1e3", "-1", "1.5", "", "Infinity"]) {
      expect(() => seconds(text)).toThrow("seconds, from 0 to 2147482");
    }
    expect(() => secondCount(1)("0")).toThrow("seconds, from 1 to 2147482");
  });

  test("that are counts say which bound they pass", () => {
    const atLeastOne = countOf(1);
    expect([atLeastOne("1"), atLeastOne("2147483647")]).toEqual([1, 2_147_483_647]);
    expect(() => atLeastOne("0")).toThrow(/at least 1\.$/);
    expect(() => atLeastOne("2147483648")).toThrow("at least 1 and of at most 2147483647");
  });

  test("keep the digits of whole numbers, as data files do", () => {
    const valueOf = (text: string): unknown => settingsOf(`key=${text}`, {})["key"];
    expect(valueOf("12345678901234567890")).toBe(12345678901234567890n);
    expect(valueOf('{"ids": [-9007199254740993, 7]}')).toEqual({ ids: [-9007199254740993n, 7] });
    expect(valueOf("9007199254740991")).toBe(9_007_199_254_740_991);
    expect(valueOf("0.1234567890123456")).toBe(0.123_456_789_012_345_6);
    expect(["1e400", "NaN", "text", "", "a=b"].map(valueOf)).toEqual([
      Infinity,
      "NaN",
      "text",
      "",
      "a=b",
    ]);
  });

  test.each<[string, string]>([
    ["judge.local", "judge.local"],
    ["judge_1.local.", "judge_1.local"],
    ["10.0.0.1", "10.0.0.1"],
    ["fd00::1", "[fd00::1]"],
    ["[fd00::1]", "[fd00::1]"],
  ])("that are a host: %s is %s", (text, name) => {
    expect(hostName(text)).toBe(name);
  });

  test.each([
    "judge.local:8100",
    "[fd00::1]:8100",
    "http://judge",
    "*.local",
    "a b",
    "a,b",
    "",
    ".",
  ])("that are no host: %j", (text) => {
    expect(() => hostName(text)).toThrow("without a scheme and a port");
  });
});

test("numbers as people read them", () => {
  expect(grouped(1234567)).toBe("1,234,567");
  expect([0, 9.96, 412.4, 1000, 59_990, 75_000].map(duration)).toEqual([
    "0.0 ms",
    "10.0 ms",
    "412 ms",
    "1.00 s",
    "59.99 s",
    "1m 15s",
  ]);
  expect([1, 59_001, 200_000, 3_599_001, 7_500_000].map(span)).toEqual([
    "1 s",
    "1m 00s",
    "3m 20s",
    "1h 00m",
    "2h 05m",
  ]);
  expect([mean([]), mean([1, 2, 6])]).toEqual([undefined, 3]);
  expect([0.5, 0.95, 0.99, 1].map((share) => quantile([5, 1, 4, 2, 3], share))).toEqual([
    3, 5, 5, 5,
  ]);
  expect(quantile([], 0.5)).toBeUndefined();
});

test("what an earlier run scored, and what was never called, is no speed of this one", () => {
  const summary = new RunSummary();
  const one = (index: number, measured: object): ScoredSample<SolutionSample> => {
    const place = { index, questionIndex: index, solutionKey: "a" };
    const sample = { dataSource: "", response: "", groundTruth: "", place } as SolutionSample;
    const outcome = { valid: true, rewardScore: 1, rewardExtraInfo: {}, waitedMs: 0, ...measured };
    return { index, sample, outcome: outcome as SampleOutcome };
  };
  for (let index = 0; index < 6; index++) summary.keep(one(index, { attempts: 1, latencyMs: 40 }));
  summary.add(one(6, { attempts: 1, latencyMs: 20 }));
  summary.add(one(7, { attempts: 0, latencyMs: 0, cached: true }));
  const run = { summary, wallMs: 1000, loop: "1 worker", advice: [], out: "rewards.jsonl" };
  const none = { baseline: undefined, money: undefined, labelKey: "is_correct", isFile: true };
  const text = reportText({ ...run, ...none });
  expect(text).toMatch(/^samples +8, 6 of before$/m);
  expect(text).toMatch(/^throughput +2.0\/s$/m);
  expect(text).toContain("wrote 8 records");
  expect(nextLines({ ...run, ...none })).toEqual([
    "What next",
    "  npx -y pnpm@12 rayling rewards view rewards.jsonl",
    "      read each solution with its score, in a browser",
  ]);
  expect(summary.latenciesMs.toSorted((a, b) => a - b)).toEqual([20, 40, 40, 40, 40, 40, 40]);
});

test("a sample agrees with its label by the score from which on it is right", () => {
  const agreeing = (scoreThreshold?: number): number => {
    const summary = new RunSummary(scoreThreshold);
    for (const [index, rewardScore] of [0.1, 0.2, 0.4, 0.6].entries()) {
      const sample = { place: { index }, label: rewardScore > 0.15 } as SolutionSample;
      const outcome = { valid: true, rewardScore, attempts: 1, latencyMs: 1 } as SampleOutcome;
      summary.add({ index, sample, outcome });
    }
    return summary.agreement.equal;
  };
  expect([agreeing(), agreeing(0.15), agreeing(0.7)]).toEqual([2, 4, 1]);
});

test("--fail-above is the share of samples that may be invalid, itself included", () => {
  const checked = (invalidCount: number, done: number, failAbove: number): void => {
    const invalid = new Map([["SCORE_THREW", { count: invalidCount, example: "no" }]]);
    const summary = { invalid, invalidCount, done } as unknown as RunSummary;
    checkFailures(summary, { policy: { onFailure: { failAbove } } } as ScoreOptions);
  };
  for (let percent = 0; percent < 100; percent++) {
    expect(() => checked(percent, 100, percent / 100)).not.toThrow();
    const more = (): void => checked(percent + 1, 100, percent / 100);
    expect(more).toThrow(expect.objectContaining({ exitCode: 3 }));
  }
  expect(() => checked(100, 100, 1)).toThrow("no sample has a score");
  expect(() => checked(0, 0, 0)).not.toThrow();
});

test("the first line of a scoring says that a baseline follows, and why", () => {
  const options: Partial<ScoreOptions> = { solutions: "a.jsonl", reward: "r.ts", out: "-" };
  const loop = { workers: 2, concurrency: 64 };
  const first = (baseline: number): string =>
    scoringText([{ ...options, ...loop, baseline } as ScoreOptions], 40);
  const does = "Scoring 40 solutions of a.jsonl by r.ts, 2 workers x 64 at a time.";
  expect(first(0)).toBe(`${does} Ctrl-C stops it.`);
  expect(first(64)).toBe(
    `${does} Then it scores up to 40 of them again, one at a time, to measure the speed-up (--baseline 0: none). Ctrl-C stops it.`,
  );
});

test("the first line of a training names the task or the data, and says what its schedule is", () => {
  const first = (...overrides: string[]): string => {
    const config = loadTrainerConfig({ name: "grpo", folder: undefined, overrides });
    return introductionOf(config, epochsOf(config.trainer));
  };
  expect(first()).toBe(
    "Training the policy tiny on the task arithmetic by grpo, schedule sync (each step waits for all of its rewards): 425 supervised steps, then 1 epoch, with a validation each 25 steps. Ctrl-C stops it.",
  );
  const own = ["rayling.task=null", "data.train_files=[a.jsonl,b.jsonl]", "trainer.test_freq=-1"];
  const steps = ["rayling.warm_start_steps=0", "trainer.total_training_steps=3"];
  expect(first(...own, ...steps, "rayling.schedule=streaming")).toBe(
    "Training the policy tiny on a.jsonl and 1 more file by grpo, schedule streaming (rewards begin with each rollout, updates with groups that are judged): 3 steps. Ctrl-C stops it.",
  );
  const both = ["rayling.warm_start_steps=0", "trainer.total_training_steps=3"];
  expect(first(...both, "trainer.total_epochs=2")).toMatch(/: 3 steps or 2 epochs, with/);
});

test("the words in the lines of steps are explained, and how a validation draws its answers", () => {
  const stream = Object.assign(Object.create(WriteStream.prototype) as WriteStream, {
    isTTY: false,
  });
  const [greedy = "", sampled = ""] = [true, false].map((one) => stepWords(stream, one).join("\n"));
  expect(greedy).toMatch(
    /^In the lines of steps: score is .+; accuracy is .+, by the likeliest answers; left is .+; waited is .+\.$/,
  );
  expect(sampled).toContain("are answered right; left is");
});

test("a stopped training names the steps and checkpoints that are there, and no others", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-place-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const checkpoints = join(folder, "ck");
  const file = join(folder, "metrics.jsonl");
  // As they are made before the first step.
  await mkdir(join(checkpoints, "_unfinished"), { recursive: true });
  await writeFile(file, "");
  const place = new RunPlace(new PhaseLine(process.stderr), false, false);
  place.open({ projectName: "p", experimentName: "e", directory: folder, totalSteps: 3 });
  const stopped = (): string => messageOf(place.stopped(new CliError(130, "stopped"), checkpoints));
  expect(stopped()).toBe("stopped");
  await writeFile(file, "{}\n");
  expect(stopped()).toBe(`stopped; the steps so far are in ${folder}`);
  await mkdir(join(checkpoints, "global_step_1"));
  expect(stopped()).toBe(
    `stopped; the steps so far are in ${folder}; checkpoints in ${checkpoints}`,
  );
});

describe("the end of a training", () => {
  const metric = "val-core/arithmetic/acc/mean@1";
  const overrides = ["rayling.directory=runs/a", "trainer.total_training_steps=10"];
  const args = ["train", "--config-name", "grpo", ...overrides];
  const end: TrainingEnd = {
    steps: 10,
    wallMs: 90_600,
    validation: { [metric]: 0.2719 },
    initialValidation: { [metric]: 0.7231 },
    initialValidationStep: 0,
    warnings: [],
    lastStep: null,
    rewards: { answers: 2560, failed: 0 },
    invalidRate: 0,
    rewardedSteps: 10,
    directory: "/somewhere/a b",
    page: null,
    checkpoints: null,
  };
  const lines = (more: Partial<TrainingEnd> = {}, ...own: string[]): string[] => {
    const config = { name: "grpo", folder: undefined, overrides: ["trainer.logger=file", ...own] };
    return endLines({ ...end, ...more }, loadTrainerConfig(config), args);
  };

  test("one that did harm says so, and names the whole command with a lower lr, which writes elsewhere", () => {
    const harm = lines({}, ...overrides);
    expect(harm.slice(0, 2)).toEqual([
      "verdict  worse than before training: accuracy 72.3 % before, 27.2 % after",
      "rewards  all 2,560 were given, none failed",
    ]);
    expect(harm.slice(harm.indexOf("What next"))).toEqual([
      "What next",
      "  npx -y pnpm@12 rayling train --config-name grpo trainer.total_training_steps=10 actor_rollout_ref.actor.optim.lr=0.001 rayling.directory=runs/a-next",
      "      train again with a lower lr than 0.003: it may keep what was known",
      "  npx -y pnpm@12 rayling report '/somewhere/a b'",
      "      make its page; further folders are compared on it",
    ]);
  });

  test("its page is named where there is one, and said to lack where the report failed", () => {
    const logger = "trainer.logger=report";
    const page = "/somewhere/a b/report.html";
    expect(lines({ page }, logger)).toContainEqual(
      expect.stringMatching(/^its page +\/somewhere\/a b\/report\.html$/),
    );
    expect(lines({}, logger)).toContainEqual(
      expect.stringMatching(/^its page +none: the report failed/),
    );
    expect(lines().join("\n")).not.toMatch(/^its page/m);
  });

  test("one that did good goes on from its checkpoints", () => {
    const better = { validation: { [metric]: 0.8 }, checkpoints: "/ck" };
    const good = lines(better, ...overrides);
    expect(good.join("\n")).toContain(
      "better than before training: accuracy 72.3 % before, 80.0 % after",
    );
    expect(good.join("\n")).not.toContain("lower lr");
    expect(good.at(-2)).toBe(
      "  npx -y pnpm@12 rayling train --config-name grpo rayling.directory=runs/a trainer.resume_mode=auto trainer.total_training_steps=20",
    );
    // Epochs that were asked for would end it where it ended.
    expect(lines(better, ...overrides, "trainer.total_epochs=1").at(-2)).toMatch(
      / trainer\.total_training_steps=20 trainer\.total_epochs=null$/,
    );
  });

  test("failed rewards are counted, as those of this process where it resumed the run", () => {
    const rewards = { answers: 2000, failed: 26 };
    const failed = /^rewards +26 of 2,000 failed: these answers have no score$/m;
    expect(lines({ rewards }).join("\n")).toMatch(failed);
    // Groups that were filtered out were scored, too.
    expect(lines({ rewards }, "algorithm.filter_groups.enable=true").join("\n")).toMatch(failed);
    const resumed = lines({ rewards, steps: 12 }).join("\n");
    expect(resumed).toMatch(/^rewards +26 of 2,000 of this process failed: /m);
    expect(resumed).toMatch(/^steps +12, 10 of them in this process$/m);
    const remax = lines({ rewards: { answers: 8, failed: 0 } }, "algorithm.adv_estimator=remax");
    expect(remax.join("\n")).toMatch(
      /^rewards +all 8 were given, none failed; greedy answers are not counted$/m,
    );
    const none = { rewards: { answers: 0, failed: 0 }, invalidRate: null };
    expect(lines(none).join("\n")).not.toContain("rewards");
  });

  test("a verdict is of each metric that was there before, in its own unit", () => {
    const reward = "val-core/own/reward/mean@1";
    const before = { [metric]: 0.5, [reward]: -1 };
    const after = { [metric]: 0.5, [reward]: -0.5, "val-core/new/acc/mean@1": 1 };
    const than = { initialValidation: before, initialValidationStep: 0 };
    expect(verdictsOf({ validation: after, ...than })).toEqual([
      {
        name: metric,
        isWorse: false,
        text: "as before training: accuracy on arithmetic 50.0 % before, 50.0 % after",
      },
      {
        name: reward,
        isWorse: false,
        text: "better than before training: reward on own -1.0000 before, -0.5000 after",
      },
    ]);
    const none = { initialValidation: undefined, initialValidationStep: undefined };
    expect(verdictsOf({ validation: after, ...none })).toEqual([]);
    // A metric without a verdict has a line with its figure.
    const alone = lines({ validation: { [metric]: 0.8 }, ...none });
    expect(alone[0]).toBe("accuracy  80.0 %");
    const same = { initialValidation: after, initialValidationStep: 0 };
    expect(verdictsOf({ validation: after, ...same })).toEqual([]);
  });

  test("a verdict on a run that was resumed without its first validation names the step of its checkpoint", () => {
    expect(lines({ initialValidationStep: 5 })[0]).toBe(
      "verdict  worse than at step 5: accuracy 72.3 % before, 27.2 % after",
    );
  });
});

describe("what may be done about samples without a score", () => {
  const failed = (error: object, count: number): FailureCount[] => {
    const summary = new RunSummary();
    for (let index = 0; index < count; index++) {
      const sample = { place: { index } } as SolutionSample;
      const outcome = { valid: false, error, attempts: 1, latencyMs: 1, waitedMs: 0 };
      summary.add({ index, sample, outcome: outcome as SampleOutcome });
    }
    return summary.failures;
  };
  const threw = { code: "SCORE_THREW", name: "Error", message: "" };
  const retrying = { retry: { attempts: 6 } };

  test.each([
    [{ ...threw, status: 429 }, {}, "3 x rate-limit: --retries 5 asks again"],
    [
      { ...threw, status: 429 },
      retrying,
      "3 x rate-limit: --rpm or --max-in-flight auto keep to what the endpoint allows; --resume asks again",
    ],
    [{ ...threw, status: 500 }, {}, "3 x infrastructure: --retries 5 asks again"],
    [
      { ...threw, status: 500 },
      retrying,
      "3 x infrastructure: no attempt was answered: --resume asks again when the endpoint is up",
    ],
    [
      { ...threw, code: "SCORE_TIMEOUT" },
      {},
      "3 x timeout: --timeout 800 waits longer, --retries 5 asks again",
    ],
    [
      threw,
      {},
      "3 x user-code: when the reward function is fixed, --resume --keep-stale scores these again",
    ],
    [
      { ...threw, code: "CANNOT_TELL" },
      {},
      "3 x CANNOT_TELL: --judge asks a judge what the function cannot tell",
    ],
  ])("%j, with %j", (error, policy, line) => {
    expect(adviceOn(failed(error, 3), { policy, timeoutMs: 400 })).toEqual([line]);
  });

  test("in words, by code, with an example", () => {
    const summary = new RunSummary();
    for (const [index, status] of [429, undefined, undefined].entries()) {
      const sample = { place: { index } } as SolutionSample;
      const error: object = { ...threw, message: "no JSON:\nhere", status };
      const outcome = { valid: false, error, attempts: 1, latencyMs: 1, waitedMs: 0 };
      summary.add({ index, sample, outcome: outcome as SampleOutcome });
    }
    expect(failureLines(summary)).toEqual([
      "3 of 3 could not be scored (100.0 %): the reward function threw (SCORE_THREW, rate-limit, user-code), for example: no JSON:",
    ]);
  });

  test("the same command scores them again, with the flags that it takes", () => {
    const args = ["score", "a.jsonl", "--resume", "--reward", "./r.ts"];
    const asked = { policy: {}, solutions: "a.jsonl" };
    const base = ["score", "a.jsonl", "--reward", "./r.ts", "--resume"];
    const late = failed({ ...threw, code: "SCORE_TIMEOUT" }, 2);
    expect(argsAgain(args, late, asked)).toEqual([...base, "--retries", "5"]);
    expect(argsAgain(args, late, { ...asked, policy: retrying })).toEqual(base);
    expect(argsAgain(args, [...late, ...failed(threw, 1)], asked)).toEqual([
      ...base,
      "--keep-stale",
    ]);
    // Neither what no call helps, nor what cannot be read twice, nor a run that is unknown.
    const data = failed({ ...threw, code: "INVALID_SAMPLE" }, 1);
    expect(argsAgain(args, data, asked)).toBeUndefined();
    expect(argsAgain(args, late, { ...asked, solutions: "/dev/stdin" })).toBeUndefined();
    expect(argsAgain([], late, asked)).toBeUndefined();
  });

  test("by class, the most frequent first, and nothing where there is nothing to do", () => {
    const failures = [
      ...failed({ ...threw, status: 503 }, 1),
      ...failed({ ...threw, code: "INVALID_SCORE" }, 2),
      ...failed(threw, 3),
      ...failed({ ...threw, code: "INVALID_SAMPLE" }, 9),
    ];
    const lines = adviceOn(failures, { policy: {} });
    expect(lines.map((line) => line.split(":", 1)[0])).toEqual([
      "5 x user-code",
      "1 x infrastructure",
    ]);
  });
});

describe("progress", () => {
  const progress = {
    done: 640,
    total: 2560,
    inFlight: 128,
    ratePerSecond: 5231.4,
    oldestMs: 41.2,
    leftMs: 367.1,
    invalid: 2,
    failures: { "user-code": 2 },
    answeredBy: {},
    spent: 0,
    spending: [],
    endpoints: [],
    rewardModels: {},
  };
  const text =
    "640 / 2,560, 1 s left, 2 invalid (user-code), 128 in flight, 5,231/s, oldest call 41 ms";
  const shown = (
    settings: { isTTY: boolean; columns?: number },
    more: Partial<ShownProgress> = {},
  ): string => {
    let output = "";
    const write = (part: string): boolean => ((output += part), true);
    const stream = Object.assign(Object.create(WriteStream.prototype) as WriteStream, settings, {
      write,
    });
    const view = new ProgressView(stream);
    view.show({ ...progress, ...more });
    view.close();
    return output;
  };

  test("a terminal gets a bar that is redrawn, never longer than its line", () => {
    expect(shown({ isTTY: true, columns: 120 })).toBe(`\r\u001b[2K[###-----------] ${text}\n`);
    // What matters least is left out whole, and a line that is too short for the first is cut.
    expect(shown({ isTTY: true, columns: 80 }, { meanScore: 0.6508 })).toBe(
      "\r\u001b[2K[##-------] 640 / 2,560, 1 s left, mean score 0.651, 2 invalid (user-code)\n",
    );
    expect(shown({ isTTY: true, columns: 16 })).toBe("\r\u001b[2K[##------] 640 \n");
  });

  test("anything else gets plain lines", () => {
    expect(shown({ isTTY: false })).toBe(`${text}\n`);
  });

  test("with the reward models that are not well, by their names", () => {
    const server = { url: "http://a:1", inFlight: 0, isOut: false, served: 0, failed: 0 };
    const well = {
      engine: "vllm",
      state: "awake",
      routerAddress: "127.0.0.1:1",
      servers: [server, server],
    } as const;
    const rewardModels = {
      well,
      judge: { ...well, servers: [server, { ...server, isOut: true }] },
      safety: { ...well, state: "failed" },
    } as const;
    expect(shown({ isTTY: false }, { rewardModels })).toBe(
      `${text}, judge: 1 of 2 servers out, safety: did not wake up\n`,
    );
  });

  test("with what is used of the limits, what it cost and how far the caps are", () => {
    const endpoint = {
      endpoint: "judge",
      waiting: 3,
      inFlight: 12,
      limit: 16,
      granted: 900,
      refused: 4,
      requests: { limit: 3000, used: 2950 },
      tokens: { limit: 2_000_000, used: 1_999_999.7 },
      breaker: "half-open",
    } as const;
    const free = { ...endpoint, endpoint: "free", limit: Infinity, refused: 0, breaker: undefined };
    const limited =
      "12 of 16 calls, 2,950 of 3,000 requests/min, 2,000,000 of 2,000,000 tokens/min, 4 refused, breaker half-open";
    const more = { invalid: 0, leftMs: undefined };
    const before = "640 / 2,560, 128 in flight, 5,231/s, oldest call 41 ms";
    expect(shown({ isTTY: false }, { ...more, endpoints: [endpoint], spent: 0.25 })).toBe(
      `${before}, ${limited}, 0.2500 spent\n`,
    );
    const unlimited = { ...free, requests: undefined, tokens: undefined };
    expect(shown({ isTTY: false }, { ...more, endpoints: [endpoint, unlimited] })).toBe(
      `${before}, judge: ${limited}\n`,
    );
    const cap = { name: "", spent: 0.25, cap: 1, state: "free" } as const;
    expect(shown({ isTTY: false }, { ...more, spent: 0.25, spending: [cap] })).toBe(
      `${before}, 0.2500 of 1.0000 spent\n`,
    );
  });
});

test("a file is made under the longest name, and one that was there keeps what fits of it", async () => {
  const made = await mkdtemp(join(tmpdir(), "rayling-names-"));
  onTestFinished(() => rm(made, { recursive: true }));
  const name = `${"é".repeat(125)}.csv`;
  const make = (text: string): Promise<void> =>
    replaceFile(join(made, name), "the export of before", (path) => {
      expect(path).toMatch(/\.csv$/);
      return writeFile(path, text);
    });
  await make("first");
  await make("second");
  const files = (await readdir(made)).toSorted((a, b) => a.length - b.length);
  expect(files).toEqual([name, expect.stringMatching(/^é+\.[0-9TZ-]+\.csv$/)]);
  const texts = files.map((file) => readFile(join(made, file), "utf8"));
  expect(await Promise.all(texts)).toEqual(["second", "first"]);
  const long = replaceFile(join(made, `a${name}`), "it", () => Promise.reject(new Error("why")));
  await expect(long).rejects.toThrow("why");
});
