/**
 * A sample's reward begins when its rollout is finished, and mini-batches are trained of whichever
 * groups are done, of this batch or of those generated ahead, as far as the staleness limit allows.
 * With a limit of 0 it is on-policy.
 */

import type { Training } from "../step/training.ts";

export async function streaming(training: Training): Promise<void> {
  const pool = training.newPool();
  while (training.hasSteps) {
    await training.fill(pool);
    for (let left = training.stepGroups; left > 0;) {
      const samples = await training.takeFrom(pool, left);
      left -= samples.length / training.settings.rollout.n;
      await training.learnFrom(samples, left === 0);
    }
    await training.report(pool);
    await training.save();
    await training.validate();
  }
}
