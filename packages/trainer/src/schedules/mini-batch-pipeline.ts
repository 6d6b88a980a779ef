/**
 * A batch is trained in mini-batches as their rewards come: whole groups, whichever are done first.
 * On-policy.
 */

import type { Training } from "../step/training.ts";

export async function miniBatchPipeline(training: Training): Promise<void> {
  for (;;) {
    const batch = await training.rollout();
    if (batch === undefined) return;
    const prepared = await training.prepare(batch);
    while (training.left(batch) > 0) {
      await training.learn(prepared, training.nextPart(training.left(batch)));
    }
    await training.report();
    await training.save();
    await training.validate();
  }
}
