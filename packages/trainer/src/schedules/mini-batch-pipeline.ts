/** A batch is trained in mini-batches as their rewards come: whole groups, whichever are done first. On-policy. */

import type { Training } from "../fit/training.ts";

export async function miniBatchPipeline(training: Training): Promise<void> {
  for (;;) {
    const batch = await training.rollout();
    if (batch === undefined) return;
    const prepared = await training.prepare(batch);
    while (batch.rewards.unasked > 0) {
      await training.learn(prepared, training.nextPart(batch.rewards.unasked));
    }
    await training.endStep();
  }
}
