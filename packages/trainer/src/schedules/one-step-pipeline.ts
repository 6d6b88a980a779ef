/** Both: the next batch is generated before this one is trained, and this one is trained in mini-batches as their rewards come. */

import type { Training } from "../fit/training.ts";

export async function oneStepPipeline(training: Training): Promise<void> {
  let batch = await training.rollout();
  while (batch !== undefined) {
    const next = await training.rollout();
    const prepared = await training.prepare(batch);
    while (batch.rewards.unasked > 0) {
      await training.learn(prepared, training.nextPart(batch.rewards.unasked));
    }
    await training.endStep();
    batch = next;
  }
}
