/**
 * Rows of a replay, each in a process of its own, several at a time where that is asked for. They
 * start in turns, because what starts takes the CPU from rows that are measured. A row that fails is
 * told when the others are done.
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import pLimit from "p-limit";
import type { ReplayPlan } from "./plans.ts";
import type { RowReport } from "./row.ts";
import type { ReplayResult, ReplayScale } from "./run.ts";

export type Row = readonly [plan: ReplayPlan, result: ReplayResult];

export interface RowsOptions {
  readonly size: ReplayScale;
  /** Rows at a time. */
  readonly parallel: number;
  readonly progress: (text: string) => void;
}

/** Rows that start at once. */
const startingAtOnce = 3;
const rowFile = fileURLToPath(new URL("row.ts", import.meta.url));

/** Rows in the order of their plans, and why others are not there. */
export interface Rows {
  readonly rows: readonly Row[];
  readonly failures: readonly unknown[];
}

export async function replayRows(
  plans: readonly ReplayPlan[],
  options: RowsOptions,
): Promise<Rows> {
  const rows: (Row | undefined)[] = plans.map(() => undefined);
  const failures: unknown[] = [];
  // The longest first, so that none of them is left alone at the end.
  const left = [...plans.entries()].toSorted(
    ([, one], [, other]) => other.recorded.publishedSeconds - one.recorded.publishedSeconds,
  );
  const starts = pLimit(startingAtOnce);
  const turns = Array.from({ length: Math.min(options.parallel, plans.length) }, async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [place, plan] = next;
      try {
        const { result } = await starts(() => begun(plan, options));
        rows[place] = [plan, await result];
      } catch (error) {
        failures.push(error);
      }
    }
  });
  await Promise.all(turns);
  return { rows: rows.filter((row) => row !== undefined), failures };
}

/** Resolves when the row has begun its first step, or has ended. */
async function begun(
  plan: ReplayPlan,
  options: RowsOptions,
): Promise<{ readonly result: Promise<ReplayResult> }> {
  const started = Promise.withResolvers<void>();
  const result = replayed(plan, options, started.resolve);
  await Promise.race([started.promise, result.catch(() => undefined)]);
  return { result };
}

/** @param onStart called when the row's first step has begun */
function replayed(
  plan: ReplayPlan,
  { size, progress }: RowsOptions,
  onStart: () => void,
): Promise<ReplayResult> {
  const child = fork(rowFile, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  return new Promise((resolve, reject) => {
    let result: ReplayResult | undefined;
    child.on("message", (report: RowReport) => {
      switch (report.kind) {
        case "started":
          onStart();
          return;
        case "progress":
          progress(report.text);
          return;
        case "result":
          ({ result } = report);
      }
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (result !== undefined) resolve(result);
      else reject(new Error(`the row ${plan.name} of ${plan.run} ended with ${code ?? signal}`));
    });
    child.send({ plan, size });
  });
}
