/**
 * The rows of a replay: the recipe's as they were recorded, ours on the times of the recipe's best,
 * and what may be left out of ours at equal scores.
 */
import type { ScheduleName, StalenessOptions } from "@rayling/trainer";
import type { Latency } from "./judge.ts";
import type { RecordedRun } from "./recorded.ts";

export interface ReplayPlan {
  /** The recorded run: a model and a back end. */
  readonly run: string;
  readonly name: string;
  readonly recorded: RecordedRun;
  readonly schedule: ScheduleName;
  readonly staleness?: StalenessOptions;
  /** As the recipe asks for rewards: batch after batch. */
  readonly batchBarrier: boolean;
  /** "auto": found out, against a judge of that capacity. */
  readonly slots: number | { readonly capacity: number };
  readonly latency: Latency;
  readonly hedge: boolean;
  /** Whether answers are those of `AnsweringPolicy`, which repeat; otherwise each is another one. */
  readonly answersRepeat: boolean;
  /** What keeps calls from the judge. */
  readonly saves: readonly Saving[];
}

export type Saving = "join" | "cache" | "cascade";

/** What a row has of the command line, where it is one of ours. */
export interface OwnSettings {
  readonly latency: Latency;
  readonly slots: number;
}

/** Rows that each run has in a table of all runs. */
export function isInAll({ run, name, batchBarrier }: ReplayPlan): boolean {
  return batchBarrier || run === mainRun || name === "streaming-1";
}

export const mainRun = "7b-megatron";

export function plansOf(
  run: string,
  runs: readonly RecordedRun[],
  ours: OwnSettings,
): readonly ReplayPlan[] {
  // The decoupled loss takes a forward pass more, which ours do not need.
  const best = runs.findLast(({ lossMode }) => lossMode === undefined);
  if (best === undefined) throw new TypeError(`no run of ${run} is recorded`);
  const recipe = runs.map((recorded): ReplayPlan => ({
    ...common,
    run,
    name: `recipe-${recorded.name}`,
    recorded,
    schedule: recorded.schedule,
    batchBarrier: true,
    slots: 256,
    latency: uniform,
  }));
  const recorded = { ...best, validationInLine: false };
  const own = ownRows.map((row): ReplayPlan => ({ ...common, run, recorded, ...ours, ...row }));
  return [...recipe, ...own];
}

const uniform: Latency = { kind: "uniform", from: 0, to: 40 };
const common = { batchBarrier: false, hedge: false, answersRepeat: false, saves: [] } as const;

type OwnRow = Pick<ReplayPlan, "name" | "schedule"> & Partial<ReplayPlan>;

const streaming = {
  schedule: "streaming",
  staleness: { limit: 1, numWarmupBatches: 1 },
} as const;

const ownRows: readonly OwnRow[] = [
  { name: "one-step-pipeline", schedule: "one-step-pipeline" },
  { ...streaming, name: "streaming-1" },
  { ...streaming, name: "streaming-1-auto-448", slots: { capacity: 448 } },
  { name: "streaming-on-policy-320", schedule: "streaming", slots: 320 },
  {
    ...streaming,
    name: "streaming-1-heavy-tail-hedged",
    latency: { kind: "lognormal", mean: 20, sigma: 1 },
    hedge: true,
  },
  saving("answers"),
  saving("answers-join", "join"),
  saving("answers-cache", "join", "cache"),
  saving("answers-cascade", "cascade"),
  saving("answers-cascade-cache", "join", "cache", "cascade"),
];

function saving(name: string, ...saves: readonly Saving[]): OwnRow {
  return { ...streaming, name, answersRepeat: true, saves };
}
