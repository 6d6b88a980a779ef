/** From the prompts that come next to rollouts with their rewards on the way. */

import { present } from "@rayling/reward-manager-registry/values";
import type { PromptBatch, PromptLoader } from "../data/prompt-loader.ts";
import type { GenerateRequest, PolicyHandle } from "../policy/policy.ts";
import { Baselines } from "../samples/baselines.ts";
import type { RewardRequests } from "./reward-requests.ts";
import type { RolloutBatch } from "../samples/rollout-batch.ts";
import { collectRollouts } from "./collect-rollouts.ts";
import type { TrainingSample } from "../samples/training-sample.ts";
import { needsBaselines } from "../settings/training-settings.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import type { StepRecord } from "../record/step-record.ts";

export interface GenerationParts {
  readonly policy: PolicyHandle;
  readonly prompts: PromptLoader;
  readonly rewards: RewardRequests;
  readonly settings: TrainingSettings;
}

export class RolloutGeneration {
  readonly #parts: GenerationParts;
  #nextBatch: number;

  /** @param nextBatch number of the prompts that are generated from first */
  constructor(parts: GenerationParts, nextBatch: number) {
    this.#parts = parts;
    this.#nextBatch = nextBatch;
  }

  /** Number of the prompts that are generated from next. */
  get nextBatch(): number {
    return this.#nextBatch;
  }

  /**
   * @param streaming whether a sample's reward begins when it is finished, not when all are
   * @param record of the step in which it is done
   */
  async next(streaming: boolean, record: StepRecord): Promise<RolloutBatch> {
    const prompts = this.#parts.prompts.batch(this.#nextBatch);
    this.#nextBatch += 1;
    return await record.clock.time("gen", () => this.#generate(prompts, streaming, record));
  }

  async #generate(
    prompts: PromptBatch,
    streaming: boolean,
    record: StepRecord,
  ): Promise<RolloutBatch> {
    const { policy, rewards, settings } = this.#parts;
    const { rollout, run } = settings;
    const { n, maxResponseLength, temperature, topP, topK } = rollout;
    const generatedAt = record.step - 1;
    const uids = prompts.uids.flatMap((uid) => Array.from({ length: n }, () => uid));
    const samples = Array<TrainingSample>(uids.length);
    const generatedMs = Array<number>(uids.length).fill(0);
    const request = {
      prompts: prompts.rows.map(({ rawPrompt }) => rawPrompt),
      n,
      maxResponseLength,
      temperature,
      topP,
      topK,
      // Another one for each batch, the same one in each run. The remainder first: beyond 2^53 not
      // all numbers are there.
      seed: ((run.seed % 2 ** 31) * 1_000_003 + prompts.number) % 2 ** 31,
      account: record.account("gen"),
    };
    // Baselines are scored first: every finished group needs its own.
    const baselines = needsBaselines(settings)
      ? await this.#baselines(request, prompts, generatedAt)
      : undefined;
    const ticket = rewards.open(uids, n, "training");
    await ticket.fill(async () => {
      await collectRollouts(policy, request, run, (rollouts) => {
        const nowMs = performance.timeOrigin + performance.now();
        for (const one of rollouts) {
          const row = one.prompt * n + one.sample;
          const uid = present(uids[row], `the uid of row ${row}`);
          const prompt = present(prompts.rows[one.prompt], `prompt ${one.prompt}`);
          const sample = { id: `${uid}/${one.sample}`, uid, prompt, rollout: one, generatedAt };
          samples[row] = sample;
          generatedMs[row] = nowMs;
          if (streaming) ticket.submit(row, sample);
        }
      });
      if (streaming) return;
      await record.clock.time("reward", () => {
        for (const [row, sample] of samples.entries()) ticket.submit(row, sample);
      });
    });
    const isUsed = new Uint8Array(samples.length);
    const { number, epoch } = prompts;
    const requested = { rewards: ticket.request, baselines, generatedMs, isUsed };
    return { samples, n, number, epoch, generatedAt, ...requested };
  }

  /** Greedy answers to the prompts of a batch, with their rewards on the way. */
  async #baselines(
    request: GenerateRequest,
    prompts: PromptBatch,
    generatedAt: number,
  ): Promise<Baselines> {
    const { policy, rewards, settings } = this.#parts;
    const samples = Array<TrainingSample>(prompts.uids.length);
    const uids = prompts.uids.map((uid) => `${uid}/greedy`);
    const ticket = rewards.open(uids, 1, "training");
    const greedy = { ...request, n: 1, doSample: false };
    await ticket.fill(() =>
      collectRollouts(policy, greedy, settings.run, (rollouts) => {
        for (const rollout of rollouts) {
          const uid = present(uids[rollout.prompt], `the uid of prompt ${rollout.prompt}`);
          const prompt = present(prompts.rows[rollout.prompt], `prompt ${rollout.prompt}`);
          const sample = { id: uid, uid, prompt, rollout, generatedAt };
          samples[rollout.prompt] = sample;
          ticket.submit(rollout.prompt, sample);
        }
      }),
    );
    return new Baselines(samples, ticket.request);
  }
}
