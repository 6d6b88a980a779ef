/**
 * The rollouts of a training in the order of their prompts: those of a checkpoint first, then new
 * ones. A batch is outstanding until all of its rows are trained or dropped, so that a checkpoint
 * has every rollout that is still needed.
 */

import type { RolloutBatch } from "../samples/rollout-batch.ts";
import type { StepRecord } from "../record/step-record.ts";
import { RolloutGeneration } from "./rollout-generation.ts";
import type { GenerationParts } from "./rollout-generation.ts";
import type { TrainingStart } from "./training-state.ts";

export class Rollouts {
  readonly #generation: RolloutGeneration;
  readonly #generating = new Set<Promise<RolloutBatch>>();
  readonly #outstanding: Set<RolloutBatch>;
  /** Batches of a checkpoint that no schedule has taken yet, oldest first. */
  readonly #restored: RolloutBatch[];
  readonly #ask: TrainingStart["ask"];

  constructor(parts: GenerationParts, { nextBatch, outstanding, ask }: TrainingStart) {
    this.#generation = new RolloutGeneration(parts, nextBatch);
    this.#outstanding = new Set(outstanding);
    this.#restored = [...outstanding];
    this.#ask = ask;
  }

  /** Number of the prompt batch that is generated next. */
  get nextBatch(): number {
    return this.#generation.nextBatch;
  }

  /** Batches with rows that are not trained yet, oldest first. */
  get outstanding(): readonly RolloutBatch[] {
    return [...this.#outstanding];
  }

  /**
   * Resolves when no generation is running: then each batch before `nextBatch` is trained or
   * outstanding. Rejects with the error of a generation.
   */
  async whenGenerated(): Promise<void> {
    while (this.#generating.size > 0) await Promise.all(this.#generating);
  }

  /**
   * Takes the oldest batch of a checkpoint that was not taken yet; its missing rewards are for
   * `ask` to ask for.
   */
  takeRestored(): RolloutBatch | undefined {
    return this.#restored.shift();
  }

  /** Asks for the missing rewards of a batch of a checkpoint. */
  ask(batch: RolloutBatch): void {
    this.#ask?.(batch);
  }

  /** Returns the oldest batch of a checkpoint; if there is none, generates the next prompts. */
  async next(streaming: boolean, record: StepRecord): Promise<RolloutBatch> {
    const restored = this.takeRestored();
    if (restored === undefined) return await this.generate(streaming, record);
    this.ask(restored);
    return restored;
  }

  /**
   * Generates the next prompts.
   *
   * @param streaming whether each reward begins with its own rollout, not with the whole batch
   */
  async generate(streaming: boolean, record: StepRecord): Promise<RolloutBatch> {
    const generated = this.#generation.next(streaming, record);
    this.#generating.add(generated);
    try {
      const batch = await generated;
      this.#outstanding.add(batch);
      return batch;
    } finally {
      this.#generating.delete(generated);
    }
  }

  /** Forgets batches whose rows are all trained or dropped. */
  forgetUsed(): void {
    for (const batch of this.#outstanding) {
      if (batch.isUsed.every((used) => used === 1)) this.#outstanding.delete(batch);
    }
  }
}
