/** The figures of the reward loop, and their tables. */
import type { Table } from "../measure/report.ts";
import { limited } from "../subjects/judged.ts";
import { askedAtOnce } from "./judged.ts";
import type { Latency, RewardsPlan } from "./measures.ts";

export interface Run {
  readonly name: string;
  readonly ms: number;
}

interface Rate {
  readonly perSecond: number;
  readonly cpuUs: number;
}

export interface NamedRate extends Rate {
  readonly name: string;
}

/** One batch of samples whose score costs nothing. */
export interface FreeBatch {
  readonly name: string;
  readonly perSecond: number;
}

/** Times are in ms. */
export interface Figures {
  /** One step of each, in each round. */
  readonly runs: readonly Run[];
  /** Ours first, then each arrangement of verl; empty where verl took no part. */
  readonly freeBatches: readonly FreeBatch[];
  /** verl and what it runs on, where it took part. */
  readonly verl: Readonly<Record<string, string>> | undefined;
  readonly shortest: number;
  readonly bound: number;
  /** A later step with a heavy tail, without hedges and with them. */
  readonly heavy: number;
  readonly hedged: number;
  readonly beside: { readonly alone: Latency; readonly blocked: Latency };
  readonly free: Rate;
  readonly freeSync: Rate;
  /** With options that have to do with each call. */
  readonly freeWith: readonly NamedRate[];
  /** A judge over HTTP, by hand first. */
  readonly judged: readonly NamedRate[];
  /** Bytes of a sample. */
  readonly held: { readonly driver: number; readonly process: number };
  /** Shares of 1. */
  readonly found: { readonly used: number; readonly refused: number };
}

export const firstStep = "reward loop, its first step";
export const nextSteps = "reward loop, steps 2 to 6";
export const laterStep = "reward loop, a later step";
export const freeBatch = "reward loop";

export function tablesOf(plan: RewardsPlan, figures: Figures): Table[] {
  return [
    stepsTable(plan, figures),
    freeTable(figures),
    ...freeBatchesTable(plan, figures),
    judgedTable(plan, figures),
    besideTable(figures),
    heldTable(plan, figures),
    foundTable(figures),
  ];
}

function stepsTable({ samples, slots }: RewardsPlan, figures: Figures): Table {
  const { runs, shortest, bound, heavy, hedged } = figures;
  const loop = medianOf(runs, laterStep);
  return {
    title: `${grouped(samples)} calls of 0 to 40 ms, ${slots} at once`,
    rows: [
      ["", "ms", "x N x mean / slots + tail", "x light tail"],
      ["shortest possible", shortest.toFixed(0), (shortest / bound).toFixed(3), ""],
      ...[...new Set(runs.map(({ name }) => name))].map((name) => {
        const ms = medianOf(runs, name);
        return [name, ms.toFixed(0), (ms / bound).toFixed(3), ""];
      }),
      [
        `${laterStep}, heavy tail (lognormal, sigma 1)`,
        heavy.toFixed(0),
        "",
        (heavy / loop).toFixed(3),
      ],
      [
        "the same with hedges, after what 80 % take",
        hedged.toFixed(0),
        "",
        (hedged / loop).toFixed(3),
      ],
    ],
  };
}

function freeTable({ free, freeSync, freeWith }: Figures): Table {
  const rates = [
    { name: "reward loop", ...free },
    { name: "the same, synchronous", ...freeSync },
    ...freeWith.map((one) => ({ ...one, name: `reward loop with ${one.name}` })),
  ];
  return {
    title: "A score function that costs nothing",
    rows: [
      ["", "samples/s", "us CPU each"],
      ...rates.map(({ name, perSecond, cpuUs }) => [name, grouped(perSecond), cpuUs.toFixed(0)]),
    ],
  };
}

function judgedTable({ judged: count }: RewardsPlan, { judged }: Figures): Table {
  return {
    title: `${grouped(count)} questions to a judge over HTTP that answers after 20 ms, ${askedAtOnce} at once`,
    rows: [
      ["", "answers/s", "us CPU each"],
      ...judged.map(({ name, perSecond, cpuUs }) => [name, grouped(perSecond), cpuUs.toFixed(0)]),
    ],
  };
}

function freeBatchesTable({ samples }: RewardsPlan, { freeBatches }: Figures): Table[] {
  const [own] = freeBatches;
  if (own === undefined) return [];
  return [
    {
      title: `${grouped(samples)} samples in one batch, a score function that costs nothing`,
      rows: [
        ["", "samples/s", "reward loop, rate x this"],
        ...freeBatches.map(({ name, perSecond }) => [
          name,
          grouped(perSecond),
          (own.perSecond / perSecond).toFixed(1),
        ]),
      ],
    },
  ];
}

/** For targets.ts: against verl's faster arrangement. Nothing where verl took no part. */
export function xVerl(freeBatches: readonly FreeBatch[]): Readonly<Record<string, number>> {
  const [own, ...others] = freeBatches.map(({ perSecond }) => perSecond);
  if (own === undefined) return {};
  return { "rewards: samples/s x verl": own / Math.max(...others) };
}

function besideTable({ beside }: Figures): Table {
  return {
    title: "An async score function of 10 ms, one sample at a time, seen by who asked",
    rows: [
      ["", "p50 ms", "p99 ms"],
      ["alone", beside.alone.p50.toFixed(2), beside.alone.p99.toFixed(2)],
      [
        "beside a loop whose function blocks for 200 ms",
        beside.blocked.p50.toFixed(2),
        beside.blocked.p99.toFixed(2),
      ],
    ],
  };
}

function heldTable(plan: RewardsPlan, { held }: Figures): Table {
  return {
    title: `${grouped(plan.held)} samples asked at once, none answered yet`,
    rows: [
      ["", "bytes each"],
      ["the driver's thread, after a collection", held.driver.toFixed(0)],
      ["the whole process (driver, workers, executors), resident", held.process.toFixed(0)],
    ],
  };
}

function foundTable({ found }: Figures): Table {
  return {
    title: `An endpoint that takes ${limited.capacity} calls of ${limited.ms} ms and does not say so`,
    rows: [
      ["", ""],
      ["of its capacity used, from the 20th round trip on", `${(found.used * 100).toFixed(1)} %`],
      ["calls refused", `${(found.refused * 100).toFixed(2)} %`],
    ],
  };
}

/** Returns the median of the runs of that name. */
export function medianOf(runs: readonly Run[], wanted: string): number {
  const sorted = runs
    .filter(({ name }) => name === wanted)
    .map(({ ms }) => ms)
    .toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
