/** A run as a trace that Perfetto opens: Chrome's format, slices that nest, arrows whose ends are in slices. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TimedCriticActor, traceOf, Tracking } from "@rayling/trainer";
import type { RunRecord, TrainingTraceEvent } from "@rayling/trainer";
import { scoredTrainings } from "../fixtures/scored-training.ts";
import { recordRun } from "./recorded-run.ts";
import { optionsIn, runFolder } from "./run-folder.ts";

const { trained } = await scoredTrainings();

const steps = 6;
const perStep = 40;

const slicesOf = (events: readonly TrainingTraceEvent[]): readonly TrainingTraceEvent[] =>
  events.filter(({ ph }) => ph === "X");
const end = ({ ts = 0, dur = 0 }: TrainingTraceEvent): number => ts + dur;

async function traced(): Promise<readonly TrainingTraceEvent[]> {
  const directory = await runFolder();
  await recordRun(directory, ["trace"], { steps, perStep });
  const text = await readFile(join(directory, "trace.json"), "utf8");
  return JSON.parse(text) as TrainingTraceEvent[];
}

test("every event is of Chrome's format, and has what its kind needs", async () => {
  const events = await traced();
  for (const event of events) {
    expect(Number.isInteger(event.pid) && Number.isInteger(event.tid)).toBe(true);
    expect(event.name).not.toBe("");
    if (event.ph === "M") {
      expect(["process_name", "process_sort_index", "thread_name"]).toContain(event.name);
    } else if (event.ph === "X") {
      expect(event.ts).toBeGreaterThanOrEqual(0);
      expect(event.dur).toBeGreaterThan(0);
    } else {
      expect(["s", "t", "f"]).toContain(event.ph);
      expect(Number.isInteger(event.id)).toBe(true);
      expect(event.bp).toBe(event.ph === "s" ? undefined : "e");
    }
  }
});

test("phases are on the trainer's line and lie within each other; samples never do", async () => {
  const slices = slicesOf(await traced());
  expect(slices.filter(({ cat }) => cat === "phase")).toHaveLength(3 * steps);
  expect(slices.filter(({ cat }) => cat === "sample")).toHaveLength(perStep * steps);
  expect(slices.filter(({ name }) => name === "score")).toHaveLength(perStep * steps);
  for (const [, lane] of Map.groupBy(slices, ({ tid }) => tid)) {
    const sorted = lane.toSorted((a, b) => (a.ts ?? 0) - (b.ts ?? 0) || end(b) - end(a));
    const open: TrainingTraceEvent[] = [];
    for (const slice of sorted) {
      while (open.length > 0 && end(open.at(-1) as TrainingTraceEvent) <= (slice.ts ?? 0))
        open.pop();
      const around = open.at(-1);
      if (around !== undefined) {
        expect(around.cat).toBe("phase");
        expect(end(around)).toBeGreaterThanOrEqual(end(slice));
      }
      open.push(slice);
    }
  }
});

interface Arrow {
  readonly sample: TrainingTraceEvent;
  readonly reward: TrainingTraceEvent;
  readonly update: TrainingTraceEvent;
}

/** Slices that its ends are in; throws where one is in none. */
function arrowsIn(events: readonly TrainingTraceEvent[]): readonly Arrow[] {
  const byTid = Map.groupBy(slicesOf(events), ({ tid }) => tid);
  const at = ({ tid, ts = 0 }: TrainingTraceEvent): TrainingTraceEvent => {
    const around = byTid.get(tid)?.filter((slice) => (slice.ts ?? 0) <= ts && end(slice) > ts);
    const innermost = around?.toSorted((a, b) => (b.ts ?? 0) - (a.ts ?? 0))[0];
    if (innermost === undefined) throw new Error(`an arrow ends at ${ts}, where nothing is`);
    return innermost;
  };
  const ends = events.filter(({ ph }) => "stf".includes(ph));
  return [...Map.groupBy(ends, ({ id }) => id).values()].map(([start, middle, tip]) => {
    if (start === undefined || middle === undefined || tip === undefined) throw new Error("short");
    expect([start.ph, middle.ph, tip.ph]).toEqual(["s", "t", "f"]);
    expect(start.ts).toBeLessThanOrEqual(middle.ts as number);
    return { sample: at(start), reward: at(middle), update: at(tip) };
  });
}

test("an arrow goes from each sample over its reward to the update of its step", async () => {
  const arrows = arrowsIn(await traced());
  expect(arrows).toHaveLength(perStep * steps);
  for (const { sample, reward, update } of arrows) {
    expect([sample.name, reward.name, update.name]).toEqual(["wait", "score", "update_actor"]);
    expect(reward.args?.["id"]).toBe(sample.args?.["id"]);
    expect(update.args?.["step"]).toBe(sample.args?.["step"]);
  }
});

test("of a training: each arrow ends in the update that learned from its sample, behind its reward", async () => {
  const directory = await runFolder();
  const tracking = await Tracking.open(optionsIn(directory, { logger: "trace" }));
  await trained("halves", {
    schedule: "mini-batch-pipeline",
    // Before each update of the policy.
    critic: TimedCriticActor.remote({ seconds: { update_critic: 0.01 } }),
    algorithm: { advEstimator: "grpo" },
    actor: { ppoMiniBatchSize: 1 },
    run: { totalTrainingSteps: 2 },
    tracking,
  });
  await tracking.close();
  const text = await readFile(join(directory, "trace.json"), "utf8");
  const events = JSON.parse(text) as TrainingTraceEvent[];
  const updates = Map.groupBy(arrowsIn(events), ({ update }) => update);
  expect([...updates.keys()].map(({ name }) => name)).toEqual(
    Array.from({ length: 8 }, () => "update_actor"),
  );
  for (const [update, own] of updates) {
    expect(own).toHaveLength(2);
    for (const { reward, sample } of own) {
      expect(sample.args?.["step"]).toBe(update.args?.["step"]);
      expect(end(reward)).toBeLessThanOrEqual(update.ts ?? 0);
    }
  }
});

test("a sample that no update learned from ends with its reward; of very many some are drawn", async () => {
  const sample = (index: number): RunRecord["samples"][number] => ({
    type: "sample",
    step: 1,
    id: String(index),
    generatedMs: 10 * index,
    startedMs: 10 * index,
    scoredMs: 10 * index + 5,
    usedMs: null,
    valid: index !== 0,
    attempts: 1,
  });
  const run = { metrics: [], phases: [], rewards: [], generations: [], warnings: [] };
  const few = traceOf({ ...run, samples: [sample(0)] });
  expect(few.filter(({ ph }) => "stf".includes(ph)).map(({ ph }) => ph)).toEqual(["s", "f"]);
  expect(slicesOf(few).map(({ name }) => name)).toEqual(["wait", "failed"]);
  const many = traceOf({ ...run, samples: Array.from({ length: 50_000 }, (_, at) => sample(at)) });
  expect(slicesOf(many).filter(({ name }) => name === "score").length).toBeLessThanOrEqual(20_000);
  expect(traceOf({ ...run, samples: [] }).every(({ ph }) => ph === "M")).toBe(true);
});
