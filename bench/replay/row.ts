/** One row in a process of its own: a plan comes over IPC, its progress and its result go back. */
import * as ray from "@rayling/core";
import type { ReplayPlan } from "./plans.ts";
import { replay } from "./run.ts";
import type { ReplayResult, ReplayScale } from "./run.ts";

export interface RowOrder {
  readonly plan: ReplayPlan;
  readonly size: ReplayScale;
}

export type RowReport =
  | { readonly kind: "started" }
  | { readonly kind: "progress"; readonly text: string }
  | { readonly kind: "result"; readonly result: ReplayResult };

process.once("message", (order: RowOrder) => void answer(order));
// Nobody is left who wants the result.
process.once("disconnect", () => process.exit(1));

async function answer({ plan, size }: RowOrder): Promise<void> {
  const report = (one: RowReport): void => void process.send?.(one);
  await ray.init({ numCpus: 16, prewarm: 0 });
  const result = await replay(plan, size, {
    started: () => report({ kind: "started" }),
    progress: (text) => report({ kind: "progress", text }),
  });
  await ray.shutdown();
  process.removeAllListeners("disconnect");
  process.send?.({ kind: "result", result } satisfies RowReport, () => process.disconnect());
}
