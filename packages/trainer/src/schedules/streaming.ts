/**
 * Each reward begins when its rollout is finished, and mini-batches are trained on the groups that
 * are scored first, of this batch or of batches generated ahead, within the staleness limit. A
 * limit of 0 is on-policy.
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
