/** What the console shows: verl's lines where it is no terminal; on one, a short line for each step over two that are drawn again. */

import { PassThrough, Writable } from "node:stream";
import type { WriteStream } from "node:tty";
import { expect, onTestFinished, test, vi } from "vitest";
import { ConsoleLogger, Tracking, type TrackedRun } from "@rayling/trainer";
import { runFolder } from "./run-folder.ts";

const run: TrackedRun = {
  projectName: "p",
  experimentName: "e",
  directory: "/nowhere",
  totalSteps: 4,
};

/** A stream that says of itself that it is a terminal, or that it is none. */
function streamOf(isTTY: boolean): { readonly stream: WriteStream; readonly text: () => string } {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 100 });
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return { stream: stream as unknown as WriteStream, text: () => text };
}

/** Rows of a terminal on which this was written. */
function screenOf(text: string): string[] {
  const rows: string[] = [""];
  for (const part of text.replaceAll("\u001b", "^").split(/(\n|\^\[1A|\^\[2K)/)) {
    if (part === "\n") rows.push("");
    else if (part === "^[1A") rows.pop();
    else if (part === "^[2K") rows[rows.length - 1] = "";
    else rows[rows.length - 1] += part;
  }
  return rows;
}

test("verbose: a line for each step as verl prints it, and nothing else", async () => {
  const { stream, text } = streamOf(true);
  const logger = new ConsoleLogger({ stream, verbose: true });
  logger.open(run);
  logger.progress({ step: 1, phase: "gen", inFlight: 3 });
  logger.phase({ step: 1, name: "gen", startMs: 0, endMs: 5 });
  logger.log({ "critic/score/mean": 0.51234567, "actor/lr": 1e-6, "critic/vf_loss": NaN }, 1);
  await logger.close();
  expect(text()).toBe(
    "step:1 - critic/score/mean:0.512346 - actor/lr:0.000001 - critic/vf_loss:NaN\n",
  );
});

test("elsewhere than on a terminal: a short line for each step, with the time that is left, and its validation", async () => {
  const { stream, text } = streamOf(false);
  let nowMs = 0;
  const logger = new ConsoleLogger({ stream, now: () => nowMs });
  logger.open(run);
  logger.log({ "val-core/gsm8k/acc/mean@1": 0.25 }, 0);
  logger.progress({ step: 1, phase: "gen", inFlight: 3 });
  nowMs = 2000;
  const times = { "timing_s/step": 2, "reward/exposed_wait_s": 0.5, "reward/invalid_rate": 0.125 };
  const more = Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`critic/x${at}`, at]));
  logger.log({ "critic/score/mean": 0.51234567, ...times, ...more }, 1);
  logger.log({ "timing_s/testing": 1 }, 1);
  logger.log({ "val-core/gsm8k/acc/mean@1": 0.5 }, 1);
  nowMs = 5000;
  logger.log({ "critic/score/mean": 1 }, 2);
  nowMs = 8000;
  logger.log({ "critic/score/mean": 1 }, 3);
  logger.log({ "critic/score/mean": 1 }, 4);
  await logger.close();
  expect(text().split("\n")).toEqual([
    "step 0/4, accuracy 25.0 %",
    "step 1/4, score 0.5123, 12.5 % without a score, took 2.00 s, waited 0.50 s for rewards",
    "step 1/4, accuracy 50.0 %",
    "step 2/4, score 1",
    "step 3/4, score 1, 3 s left",
    "step 4/4, score 1",
    "",
  ]);
});

test("on a terminal: where the run is, what the step spends its time on, and how long it will take", async () => {
  const { stream, text } = streamOf(true);
  let nowMs = 0;
  const logger = new ConsoleLogger({ stream, now: () => nowMs });
  logger.open(run);
  nowMs = 600_000;
  // A validation before the first step says nothing of how long a step takes.
  logger.log({ "val-core/gsm8k/acc/mean@1": 0.25 }, 0);
  logger.progress({ step: 1, phase: "gen" });
  // A first step says nothing either: it compiles.
  nowMs = 900_000;
  logger.log({ "critic/score/mean": 0.125, "timing_s/step": 300 }, 1);
  nowMs = 960_000;
  logger.log({ "critic/score/mean": 0.125, "timing_s/step": 60 }, 2);
  logger.progress({ step: 3, phase: "gen", inFlight: 12 });
  expect(text()).not.toContain("left");
  nowMs = 1_020_000;
  logger.log(
    { "critic/score/mean": 0.25, "timing_s/step": 60, "val-core/gsm8k/acc/mean@1": 0.5 },
    3,
  );
  logger.progress({ step: 4, phase: "gen", inFlight: 12 });
  nowMs = 1_035_000;
  logger.phase({ step: 4, name: "gen", startMs: 60_000, endMs: 75_000 });
  logger.phase({ step: 4, name: "score", startMs: 60_000, endMs: 75_000, track: "rewards" });
  logger.progress({ step: 4, phase: "update_actor", inFlight: 7 });
  nowMs = 1_040_000;
  logger.progress({ step: 4, phase: "update_actor", inFlight: 5 });
  await logger.close();
  expect(screenOf(text())).toEqual([
    "step 0/4, accuracy 25.0 %",
    "step 1/4, score 0.125, took 5m 00s",
    "step 2/4, score 0.125, took 1m 00s",
    "step 3/4, score 0.25, accuracy 50.0 %, took 1m 00s",
    "about 1m 00s left",
    "step 4/4 [##################------], 40 s left, accuracy 50.0 %, score 0.25, 5 rewards in flight",
    "[gggggggggggggggggguuuuuu] gen 15.0 s, update_actor 5.00 s ...",
    "",
  ]);
});

test("a validation that is judged later has a line of its own and leaves the step that goes on alone", async () => {
  const { stream, text } = streamOf(true);
  let nowMs = 0;
  const logger = new ConsoleLogger({ stream, now: () => nowMs });
  logger.open(run);
  for (const step of [1, 2]) {
    nowMs += 60_000;
    logger.log({ "critic/score/mean": 0.5 }, step);
  }
  logger.progress({ step: 3, phase: "gen", inFlight: 1 });
  nowMs += 10_000;
  logger.phase({ step: 3, name: "gen", startMs: 120_000, endMs: 130_000 });
  logger.log({ "val-core/gsm8k/acc/mean@1": 0.5 }, 1);
  logger.log({ "timing_s/save_checkpoint": 2, "perf/throughput": 3 }, 2);
  await logger.close();
  expect(screenOf(text())).toEqual([
    "step 1/4, score 0.5",
    "step 2/4, score 0.5",
    "step 1/4, accuracy 50.0 %",
    "step 3/4 [############------------], accuracy 50.0 %, score 0.5, 1 rewards in flight",
    "[gggggggggggggggggggggggg] gen 10.0 s",
    "",
  ]);
});

test("when the last step is over only the lines of steps are left, however often they were drawn", async () => {
  const { stream, text } = streamOf(true);
  let nowMs = 0;
  const logger = new ConsoleLogger({ stream, now: () => nowMs });
  logger.open(run);
  for (let step = 1; step <= 4; step += 1) {
    for (const phase of ["gen", "adv", "gen"]) {
      logger.progress({ step, phase, inFlight: 1 });
      nowMs += 1000;
      logger.phase({ step, name: phase, startMs: nowMs - 1000, endMs: nowMs });
    }
    logger.log({ "critic/score/mean": step / 4 }, step);
  }
  await logger.close();
  expect(screenOf(text())).toEqual([
    "step 1/4, score 0.25",
    "step 2/4, score 0.5",
    "step 3/4, score 0.75",
    "about 3 s left",
    "step 4/4, score 1",
    "",
  ]);
  // A phase that comes again is counted once each time.
  expect(text()).toContain("gen 2.00 s, adv 1.00 s");
});

test("no line is longer than the terminal is wide", async () => {
  const { stream, text } = streamOf(true);
  const logger = new ConsoleLogger({ stream, now: () => 0 });
  logger.open(run);
  for (let index = 0; index < 20; index += 1) {
    logger.phase({ step: 1, name: `phase_${index}`, startMs: 0, endMs: 1000 });
  }
  logger.progress({ step: 1, phase: "gen", inFlight: 1 });
  await logger.close();
  const widths = screenOf(text()).map(({ length }) => length);
  expect(Math.max(...widths)).toBeLessThanOrEqual(99);
  expect(Math.max(...widths)).toBeGreaterThan(80);
});

test.each([80, 200])(
  "on %i columns what does not fit is left out whole, the least important first",
  async (columns) => {
    const { stream, text } = streamOf(true);
    stream.columns = columns;
    const logger = new ConsoleLogger({ stream, now: () => 0 });
    logger.open({ ...run, totalSteps: 200 });
    const times = { "timing_s/step": 1.2, "reward/exposed_wait_s": 0.25 };
    const failed = { "reward/invalid_rate": 0.125 };
    logger.log({ "critic/score/mean": 0.7422, ...failed, ...times }, 199);
    logger.progress({ step: 200, phase: "gen", inFlight: 231 });
    await logger.close();
    const line = "step 199/200, score 0.7422, 12.5 % without a score, took 1.20 s";
    const [finished = "", running = ""] = screenOf(text());
    expect(finished).toBe(columns === 80 ? line : `${line}, waited 0.25 s for rewards`);
    const bar = columns === 80 ? "[###########-]" : "[#######################-]";
    expect(running).toBe(`step 200/200 ${bar}, score 0.7422, 231 rewards in flight`);
  },
);

test("on a terminal that became narrower, what was drawn is taken away whole", async () => {
  const { stream, text } = streamOf(true);
  const logger = new ConsoleLogger({ stream, now: () => 0 });
  logger.open(run);
  logger.progress({ step: 1, phase: "gen", inFlight: 1 });
  const before = text().length;
  stream.columns = 20;
  logger.warning(1, "narrow");
  // Two lines of 52 and 31 columns have three and two rows of 20.
  const rows = text()
    .slice(0, before)
    .split("\n")
    .slice(0, 2)
    .map(({ length }) => Math.ceil(length / 20));
  expect(rows.some((one) => one > 1)).toBe(true);
  const ups = text().slice(before).split("\u001b[1A").length - 1;
  expect(ups).toBe(rows[0]! + rows[1]!);
  await logger.close();
});

test("a warning is a line of its own, on a terminal above the view", async () => {
  for (const isTTY of [false, true]) {
    const { stream, text } = streamOf(isTTY);
    const logger = new ConsoleLogger({ stream, now: () => 0 });
    logger.open(run);
    logger.warning(4, "the validation fell");
    await logger.close();
    expect(screenOf(text())).toEqual(["warning: the validation fell", ""]);
  }
});

test("a warning that is longer than the terminal is wide is broken between words; elsewhere it is one line", async () => {
  const warning =
    "the validation of step 5 is below that of step 0: val-core/arithmetic/acc/mean@1 is 0.2077 and was 0.7231";
  for (const isTTY of [false, true]) {
    const { stream, text } = streamOf(isTTY);
    stream.columns = 80;
    const logger = new ConsoleLogger({ stream, now: () => 0 });
    logger.open(run);
    logger.warning(5, warning);
    await logger.close();
    expect(screenOf(text())).toEqual(
      isTTY
        ? [
            "warning: the validation of step 5 is below that of step 0:",
            "  val-core/arithmetic/acc/mean@1 is 0.2077 and was 0.7231",
            "",
          ]
        : [`warning: ${warning}`, ""],
    );
  }
});

test.each([true, false])(
  "an output that takes nothing more (a terminal: %s) ends nothing: one warning, and training goes on",
  async (isTTY) => {
    const { stream, text } = streamOf(isTTY);
    const warnings: string[] = [];
    const tracking = await Tracking.open({
      logger: [],
      loggers: [new ConsoleLogger({ stream })],
      projectName: "p",
      experimentName: "e",
      directory: await runFolder(),
      onWarning: ({ message }) => warnings.push(message),
    });
    tracking.log({ "critic/score/mean": 1 }, 1);
    await new Promise((resolve) => stream.once("data", resolve));
    // A closed pipe: each write after it is an event "error".
    await new Promise((resolve) => stream.once("error", resolve).destroy(new Error("write EPIPE")));
    for (let step = 2; step <= 4; step++) tracking.log({ "critic/score/mean": 1 }, step);
    await tracking.close();
    expect(warnings).toEqual([
      'tracking "console": it failed, and receives nothing more: write EPIPE',
    ]);
    expect(text()).toContain("step 1");
  },
);

test("an error of the last line is a warning, too, and a stream that was fine has no listener left", async () => {
  const { stream } = streamOf(false);
  const fine = new ConsoleLogger({ stream });
  fine.open(run);
  await fine.close();
  expect(stream.listenerCount("error")).toBe(0);
  const full = Object.assign(
    new Writable({ write: (_chunk, _encoding, done) => done(new Error("write ENOSPC")) }),
    { isTTY: false },
  ) as unknown as WriteStream;
  const failing = new ConsoleLogger({ stream: full });
  failing.open(run);
  failing.log({ "critic/score/mean": 1 }, 4);
  await expect(failing.close()).rejects.toThrow("write ENOSPC");
});

test("a reader that has paused does not hold up the end, and may go later", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const paused = Object.assign(new Writable({ write: () => undefined }), {
    isTTY: false,
  }) as unknown as WriteStream;
  const logger = new ConsoleLogger({ stream: paused });
  logger.open(run);
  logger.log({ "critic/score/mean": 1 }, 4);
  const closed = logger.close();
  await vi.runAllTimersAsync();
  await closed;
  expect(paused.listenerCount("error")).toBe(1);
});
