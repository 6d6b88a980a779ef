/**
 * Question: what does a big value cost: put and get of 800 MB against a memcpy of the same, and a 1
 * MiB result against the bare port?
 *
 * The aim is one copy in and none out, so the floor of put + get is one copy into memory made for
 * it; a copy into memory that was touched before shows how much of that is the kernel's first touch
 * of new pages.
 */
import * as ray from "@rayling/core";
import { figureOf, type Measured, ratioTo, type Section, tableOf } from "./measure/figures.ts";
import { interleave, type RoundPlan } from "./measure/interleave.ts";
import type { Progress, Report } from "./measure/report.ts";
import { heldElements, Holder } from "./subjects/actors.ts";
import { rawValues } from "./subjects/raw/value.ts";

const memcpyName = "memcpy to new shared memory";
const ownName = "rayling put + get";

const putAndGet = (elements: number): Section => ({
  id: "put-get",
  title: `put + get of a Float64Array of ${(elements * 8) / 1e6} MB`,
  reading: "time",
  perIteration: 1,
  unit: "ms",
  floors: [memcpyName],
});

const bigResult: Section = {
  id: "big-result",
  title: "get of a 1 MiB Float64Array that a method returns",
  reading: "time",
  perIteration: 1,
  unit: "us",
  floors: ["raw port, copy to shared memory"],
};

/** Call it inside a session. */
export async function measureValues(
  plan: RoundPlan,
  elements: number,
  say: Progress,
): Promise<Report> {
  const big = await measurePutAndGet(plan, elements, say);
  const sections = [big, await measureBigResult(plan, say)];
  return {
    tables: sections.map(tableOf),
    measured: { "put + get x memcpy": ratioTo(big, ownName, (name) => name === memcpyName) },
    details: sections,
  };
}

async function measurePutAndGet(
  plan: RoundPlan,
  elements: number,
  say: Progress,
): Promise<Measured> {
  const section = putAndGet(elements);
  const values = new Float64Array(elements).fill(1);
  values[elements - 1] = elements - 1;
  const used = new Float64Array(elements).fill(1);
  const check = marked(values);
  const contestants = [
    {
      name: memcpyName,
      run: async () => {
        const copy = new Float64Array(new SharedArrayBuffer(values.byteLength));
        copy.set(values);
        check(copy);
      },
    },
    {
      name: "memcpy to memory in use",
      run: async () => {
        used.set(values);
        check(used);
      },
    },
    { name: ownName, run: async () => check(await ray.get(ray.put(values))) },
  ];
  const samples = await interleave(contestants, fewRounds(plan), (round) =>
    say(`${section.title}: round ${round}`),
  );
  return { ...section, figures: samples.map(figureOf) };
}

async function measureBigResult(plan: RoundPlan, say: Progress): Promise<Measured> {
  const raw = await rawValues(heldElements);
  const holder = Holder.remote();
  const expected = heldElements - 1;
  const check = (values: Float64Array): void =>
    verify(values.length - 1 + (values.at(-1) ?? 0), 2 * expected);
  try {
    const contestants = [
      { name: "raw port, copy to shared memory", run: async () => check(await raw.read("share")) },
      { name: "raw port, structured clone", run: async () => check(await raw.read("clone")) },
      { name: "rayling", run: async () => check(await ray.get(holder.read.remote())) },
    ];
    const samples = await interleave(contestants, plan, (round) =>
      say(`${bigResult.title}: round ${round} of ${plan.rounds}`),
    );
    return { ...bigResult, figures: samples.map(figureOf) };
  } finally {
    await raw.close();
    await ray.kill(holder);
  }
}

/** One iteration takes seconds where the kernel hands out pages slowly. */
function fewRounds(plan: RoundPlan): RoundPlan {
  return { ...plan, rounds: Math.min(plan.rounds, 3), minIterations: 1 };
}

/** Marks the values before each copy and finds the mark in the copy: an old copy does not pass. */
function marked(values: Float64Array): (copy: Float64Array) => void {
  values[0] = 1;
  return (copy) => {
    verify(copy[0] ?? 0, values[0] ?? 0);
    verify(copy[values.length - 1] ?? 0, values.length - 1);
    verify(copy.length, values.length);
    values[0] = (values[0] ?? 0) + 1;
  };
}

function verify(found: number, expected: number): void {
  if (found !== expected)
    throw new Error(`a value arrived wrong: ${found} in place of ${expected}`);
}
