/**
 * The next batch is generated before this one is trained, with weights that are one update older:
 * its rewards are on the way while this one waits and is trained.
 */

import type { Training } from "../step/training.ts";

export async function oneStepOffPolicy(training: Training): Promise<void> {
  let batch = await training.rollout();
  while (batch !== undefined) {
    const next = await training.rollout();
    const prepared = await training.prepare(batch);
    await training.learn(prepared, training.left(batch));
    await training.report();
    await training.save();
    await training.validate();
    batch = next;
  }
}
