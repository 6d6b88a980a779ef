/**
 * One step off-policy and mini-batch pipeline: the next batch is generated before this one is
 * trained, and this one is trained in mini-batches as their rewards come.
 */

import type { Training } from "../step/training.ts";

export async function oneStepPipeline(training: Training): Promise<void> {
  let batch = await training.rollout();
  while (batch !== undefined) {
    const next = await training.rollout();
    const prepared = await training.prepare(batch);
    while (training.left(batch) > 0) {
      await training.learn(prepared, training.nextPart(training.left(batch)));
    }
    await training.report();
    await training.save();
    await training.validate();
    batch = next;
  }
}
