/**
 * Question: what does a pool of actors cost for CPU work, against two worker threads by hand? All
 * hash the same items: 16 KiB each, several rounds of SHA-256.
 *
 * Warm: rounds that alternate in one process. Cold: one pass in a fresh process, from the import of
 * the pool's library on, threads and session included. Every digest is compared with that which
 * this thread computes.
 */
import * as ray from "@rayling/core";
import {
  cpuRatio,
  figureOf,
  type Measured,
  ratioTo,
  type Section,
  tableOf,
} from "./measure/figures.ts";
import { buildCore, fresh } from "./measure/fresh.ts";
import { interleave, type Round } from "./measure/interleave.ts";
import { field } from "./measure/printed.ts";
import type { Progress, Report } from "./measure/report.ts";
import {
  aheadName,
  hashSubjects,
  type HashSubject,
  mapName,
  mapUnorderedName,
  plainName,
} from "./subjects/hashing/subjects.ts";
import { hash, hashRounds, type Item, itemsOf } from "./subjects/hashing/work.ts";

export interface PoolsPlan {
  readonly items: number;
  readonly rounds: number;
  /** Fresh processes of each. */
  readonly processes: number;
}

const cold = new URL("./subjects/hashing/cold.ts", import.meta.url);

export async function measurePools(plan: PoolsPlan, say: Progress): Promise<Report> {
  const items = itemsOf(plan.items);
  const expected = items.map((item) => hash(item).digest);
  const measured = [
    await measureWarm(plan, items, expected, say),
    await measureCold(plan, expected, say),
  ];
  return {
    tables: measured.map(tableOf),
    measured: Object.fromEntries(measured.flatMap(ratiosOf)),
    details: measured,
  };
}

function sectionOf(state: "warm" | "cold", { items }: PoolsPlan): Section {
  const count = items.toLocaleString("en-US");
  return {
    id: `pools, ${state}`,
    title: `${count} items of 16 KiB, ${hashRounds} rounds of SHA-256 each, ${state}`,
    reading: "time",
    perIteration: 1,
    unit: "ms",
    floors: [plainName],
  };
}

async function measureWarm(
  plan: PoolsPlan,
  items: readonly Item[],
  expected: readonly string[],
  say: Progress,
): Promise<Measured> {
  const subjects: HashSubject[] = [];
  try {
    const contestants = [];
    for (const [name, start] of Object.entries(hashSubjects)) {
      const subject = await start();
      subjects.push(subject);
      const run = async (): Promise<void> => verify(name, await subject.hashAll(items), expected);
      contestants.push({ name, run });
    }
    // One iteration lasts longer than any round.
    const rounds = { rounds: plan.rounds, roundMs: 0, minIterations: 1 };
    const samples = await interleave(contestants, rounds, (round) =>
      say(`warm pools: round ${round} of ${plan.rounds}`),
    );
    return { ...sectionOf("warm", plan), figures: samples.map(figureOf) };
  } finally {
    await Promise.all(subjects.map((subject) => subject.close()));
    await ray.shutdown();
  }
}

async function measureCold(
  plan: PoolsPlan,
  expected: readonly string[],
  say: Progress,
): Promise<Measured> {
  await buildCore();
  const names = Object.keys(hashSubjects);
  const rounds = new Map(names.map((name): [string, Round[]] => [name, []]));
  for (let turn = 0; turn < plan.processes; turn++) {
    for (const [name, all] of rounds) {
      say(`cold pools: process ${turn + 1} of ${plan.processes}, ${name}`);
      const printed = await fresh(cold, name, String(plan.items));
      verify(name, field(printed, "hashed"), expected);
      const ms = Number(field(printed, "ms"));
      all.push({ medianMs: ms, meanMs: ms, cpuMs: Number(field(printed, "cpuMs")) });
    }
  }
  const figures = names.map((name) => {
    const all = rounds.get(name) ?? [];
    const sortedMs = all.map(({ meanMs }) => meanMs).toSorted((a, b) => a - b);
    return figureOf({ name, sortedMs, rounds: all });
  });
  return { ...sectionOf("cold", plan), figures };
}

/** For targets.ts. */
function ratiosOf(measured: Measured): [string, number][] {
  return [
    [`${measured.id}: map`, mapName] as const,
    [`${measured.id}: mapUnordered`, mapUnorderedName] as const,
    [`${measured.id}: one ahead`, aheadName] as const,
  ].flatMap(([key, name]): [string, number][] => [
    [`${key} x plain`, ratioTo(measured, name, (other) => other === plainName)],
    [`${key} CPU x plain`, cpuRatio(measured, name, plainName)],
  ]);
}

function verify(name: string, hashed: unknown, expected: readonly string[]): void {
  if (!Array.isArray(hashed)) throw new TypeError(`${name}: results were expected`);
  const results: readonly unknown[] = hashed;
  const digests = new Map(results.map((one) => [field(one, "index"), field(one, "digest")]));
  const isRight = expected.every((digest, index) => digests.get(index) === digest);
  if (!isRight || results.length !== expected.length) {
    throw new Error(`${name}: a digest is missing or wrong`);
  }
}
