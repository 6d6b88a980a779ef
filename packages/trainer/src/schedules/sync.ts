/**
 * One step after the other: the rewards of a batch are waited for before it is trained, and only
 * log-probabilities are worked out meanwhile. The baseline.
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
