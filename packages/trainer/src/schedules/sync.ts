/**
 * One step after the other: all rewards of a batch are there before it is trained; only
 * log-probabilities are computed meanwhile. The baseline of the other schedules.
 */

import type { Training } from "../step/training.ts";

export async function sync(training: Training): Promise<void> {
  for (;;) {
    const batch = await training.rollout();
    if (batch === undefined) return;
    const prepared = await training.prepare(batch);
    await training.learn(prepared, training.left(batch));
    await training.report();
    await training.save();
    await training.validate();
  }
}
