/**
 * Rows of a replay, each in a process of its own, several at a time where that is asked for. A
 * process that ends without a result ends all of them.
 */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
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

const rowFile = fileURLToPath(new URL("row.ts", import.meta.url));

/** Returns the rows in the order of their plans. */
export async function replayRows(
  plans: readonly ReplayPlan[],
  options: RowsOptions,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const children = new Set<ChildProcess>();
  const left = [...plans.entries()];
  const turns = Array.from({ length: Math.min(options.parallel, plans.length) }, async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [place, plan] = next;
      rows[place] = [plan, await replayed(plan, options, children)];
    }
  });
  try {
    await Promise.all(turns);
  } finally {
    left.length = 0;
    for (const child of children) child.kill();
  }
  return rows;
}

function replayed(
  plan: ReplayPlan,
  { size, progress }: RowsOptions,
  children: Set<ChildProcess>,
): Promise<ReplayResult> {
  const child = fork(rowFile, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  children.add(child);
  return new Promise((resolve, reject) => {
    let result: ReplayResult | undefined;
    child.on("message", (report: RowReport) => {
      if (report.kind === "progress") progress(report.text);
      else ({ result } = report);
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      children.delete(child);
      if (result !== undefined) resolve(result);
      else reject(new Error(`the row ${plan.name} of ${plan.run} ended with ${code ?? signal}`));
    });
    child.send({ plan, size });
  });
}
