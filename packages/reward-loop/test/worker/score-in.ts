/** One sample through the executors of a worker. */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "../../src/outcome.ts";
import type { ExecutorPool } from "../../src/worker/executors/pool/executor-pool.ts";
import type { SubmitOptions } from "../../src/worker/executors/job.ts";

export function scoreIn(
  pool: ExecutorPool,
  sample: RewardSample,
  options?: SubmitOptions,
): Promise<SampleOutcome> {
  return new Promise((settled, rejected) => pool.score(sample, 0, { settled, rejected }, options));
}
