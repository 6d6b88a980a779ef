/**
 * How many per second of each row of Ray's microbenchmark, with Ray's definitions (ray/rows.ts)?
 * Beside real Ray: `pnpm bench:ray`.
 */
import * as ray from "@rayling/core";
import { measureRate, type Rate, type RatePlan } from "./measure/rates.ts";
import type { Progress, Report } from "./measure/report.ts";
import { type RayRow, rayRows } from "./ray/rows.ts";

/** Call it inside a session. */
export async function measureRayRows(plan: RatePlan, say: Progress): Promise<Report> {
  const rates: (Rate & { readonly name: string; readonly unit: string })[] = [];
  for (const row of rayRows) {
    say(row.name);
    rates.push({ name: row.name, unit: row.unit, ...(await measureRow(row, plan)) });
  }
  const rows = rates.map(({ name, unit, mean, sd }) => [name, unit, rateText(mean), rateText(sd)]);
  return {
    tables: [
      { title: "Rows of Ray's microbenchmark", rows: [["", "per second", "mean", "sd"], ...rows] },
    ],
    measured: {},
    details: rates,
  };
}

export async function measureRow(row: RayRow, plan: RatePlan): Promise<Rate> {
  const { actors, ...workload } = await row.prepare();
  try {
    return await measureRate(workload, plan);
  } finally {
    await Promise.all(actors.map((actor) => ray.kill(actor)));
  }
}

export function rateText(perSecond: number): string {
  return perSecond < 100 ? perSecond.toPrecision(3) : Math.round(perSecond).toLocaleString("en-US");
}
