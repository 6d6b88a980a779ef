/**
 * What does a big value cost: put and get of 80 MB against a memcpy of the same, and a 1 MiB result against the bare port?
 *
 * The aim is one copy in and none out, so the floor of put + get is one copy into memory made for it; a copy into memory that was touched
 * before shows how much of that is the kernel's first touch of new pages.
 */
import * as ray from "@rayling/core";
import { figureOf, type Report, type Section } from "./measure/figures.ts";
import { interleave, type RoundPlan } from "./measure/interleave.ts";
import { heldElements, Holder } from "./subjects/actors.ts";
import { rawValues } from "./subjects/raw/value.ts";

const bigElements = 10_000_000;

const putAndGet: Section = {
  id: "put-get",
  title: "put + get of an 80 MB Float64Array",
  reading: "time",
  perIteration: 1,
  unit: "ms",
  floors: ["memcpy to new shared memory"],
};

const bigResult: Section = {
  id: "big-result",
  title: "get of a 1 MiB Float64Array that a method returns",
  reading: "time",
  perIteration: 1,
  unit: "us",
  floors: ["raw port, copy to shared memory"],
};

export interface ValuesRequest {
  readonly plan: RoundPlan;
  readonly onRound: (title: string, round: number) => void;
}

/** Call it inside a session. */
export async function measureValues(request: ValuesRequest): Promise<Report[]> {
  return [await measurePutAndGet(request), await measureBigResult(request)];
}

async function measurePutAndGet({ plan, onRound }: ValuesRequest): Promise<Report> {
  const values = Float64Array.from({ length: bigElements }, (_, index) => index);
  const used = new Float64Array(bigElements).fill(1);
  const check = marked(values);
  const contestants = [
    {
      name: "memcpy to new shared memory",
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
    { name: "rayling put + get", run: async () => check(await ray.get(ray.put(values))) },
  ];
  const samples = await interleave(contestants, plan, (round) => onRound(putAndGet.title, round));
  return { ...putAndGet, figures: samples.map(figureOf) };
}

async function measureBigResult({ plan, onRound }: ValuesRequest): Promise<Report> {
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
    const samples = await interleave(contestants, plan, (round) => onRound(bigResult.title, round));
    return { ...bigResult, figures: samples.map(figureOf) };
  } finally {
    await raw.close();
    await ray.kill(holder);
  }
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
