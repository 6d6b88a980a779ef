/** All that can be measured by itself, each with its plan: a full one and a quick one. */
import * as ray from "@rayling/core";
import { measureCalls } from "./calls.ts";
import { type ColdPlan, measureCold } from "./cold.ts";
import { measureCrowded } from "./crowded.ts";
import { type HostsPlan, measureHosts } from "./hosts.ts";
import { measureLosses } from "./losses.ts";
import { measureMachines } from "./machines.ts";
import type { RoundPlan } from "./measure/interleave.ts";
import type { RatePlan } from "./measure/rates.ts";
import type { Progress, Report } from "./measure/report.ts";
import { measurePools, type PoolsPlan } from "./pools.ts";
import { measureRayRows } from "./ray-rows.ts";
import { rowResources } from "./ray/rows.ts";
import { measureRewards, type RewardsPlan } from "./rewards.ts";
import { measureScale, type ScalePlan } from "./scale.ts";
import { measureServe, type ServePlan } from "./serve.ts";
import { measureValues } from "./values.ts";

export const suites = [
  "serial",
  "in-flight",
  "values",
  "ray-rows",
  "scale",
  "hosts",
  "machines",
  "rewards",
  "serve",
  "losses",
  "pools",
  "cold",
  "crowded",
] as const;
export type Suite = (typeof suites)[number];

export interface Plans {
  readonly interleaved: RoundPlan;
  /** Length of the big value: so many float64. */
  readonly bigElements: number;
  readonly rates: RatePlan;
  readonly scale: ScalePlan;
  readonly hosts: HostsPlan;
  readonly rewards: RewardsPlan;
  readonly serve: ServePlan;
  readonly pools: PoolsPlan;
  readonly cold: ColdPlan;
  readonly crowded: RoundPlan;
}

/**
 * Ten rounds of a third of a second: the median of rounds moves by a few percent between runs on a
 * quiet machine. Rates as Ray's own.
 */
export const fullPlans: Plans = {
  interleaved: { rounds: 10, roundMs: 300, minIterations: 3 },
  bigElements: 100_000_000,
  rates: { warmUpMs: 1000, rounds: 4, roundMs: 2000 },
  scale: { pendingCalls: 1_000_000, actors: 10_000, calls: 10_000_000, actorLives: 100_000 },
  hosts: { rounds: 3, hosts: 20, together: 100 },
  rewards: {
    samples: 5120,
    slots: 256,
    free: 100_000,
    judged: 4000,
    held: 100_000,
    found: 20_000,
    rounds: 5,
  },
  serve: {
    rounds: 5,
    requests: 5000,
    inFlight: 64,
    batches: 100,
    batchSize: 256,
    batchesInFlight: 4,
  },
  pools: { items: 2000, rounds: 5, processes: 3 },
  cold: { processes: 5, calls: 1000, batches: 20 },
  crowded: { rounds: 5, roundMs: 200, minIterations: 3 },
};

export const quickPlans: Plans = {
  interleaved: { rounds: 2, roundMs: 40, minIterations: 2 },
  bigElements: 10_000_000,
  rates: { warmUpMs: 100, rounds: 2, roundMs: 200 },
  scale: { pendingCalls: 100_000, actors: 1000, calls: 200_000, actorLives: 5000 },
  hosts: { rounds: 1, hosts: 3, together: 6 },
  rewards: {
    samples: 512,
    slots: 256,
    free: 5000,
    judged: 500,
    held: 5000,
    found: 10_000,
    rounds: 2,
  },
  serve: {
    rounds: 1,
    requests: 200,
    inFlight: 16,
    batches: 4,
    batchSize: 64,
    batchesInFlight: 2,
  },
  pools: { items: 200, rounds: 1, processes: 1 },
  cold: { processes: 1, calls: 200, batches: 4 },
  crowded: { rounds: 1, roundMs: 40, minIterations: 2 },
};

type Run = (plans: Plans, say: Progress) => Promise<Report>;

const runs: Readonly<Record<Suite, Run>> = {
  serial: ({ interleaved }, say) => measureCalls([1], interleaved, say),
  "in-flight": ({ interleaved }, say) => measureCalls([64, 1000], interleaved, say),
  values: ({ interleaved, bigElements }, say) => measureValues(interleaved, bigElements, say),
  "ray-rows": ({ rates }, say) => measureRayRows(rates, say),
  scale: ({ scale }, say) => measureScale(scale, say),
  hosts: ({ hosts }, say) => measureHosts(hosts, say),
  machines: ({ interleaved, bigElements }, say) =>
    measureMachines(interleaved, bigElements / 4, say),
  rewards: ({ rewards }, say) => measureRewards(rewards, say),
  serve: ({ serve }, say) => measureServe(serve, say),
  losses: ({ interleaved }, say) => measureLosses(interleaved, say),
  pools: ({ pools }, say) => measurePools(pools, say),
  cold: ({ cold }, say) => measureCold(cold, say),
  crowded: ({ crowded }, say) => measureCrowded(crowded, say),
};

/** Suites that make their sessions themselves, or have none in this process. */
const ownSession: ReadonlySet<Suite> = new Set(["machines", "hosts", "serve", "pools", "cold"]);

export async function runSuite(suite: Suite, plans: Plans, say: Progress): Promise<Report> {
  if (!ownSession.has(suite)) await ray.init({ resources: rowResources });
  try {
    return await runs[suite](plans, say);
  } finally {
    await ray.shutdown();
    say("");
  }
}
