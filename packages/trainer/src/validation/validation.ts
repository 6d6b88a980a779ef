/**
 * Validation: answers to all prompts, greedy by default, scored in a lane of their own, and verl's
 * metrics of them.
 */

import type { SampleOutcome } from "@rayling/reward-loop";
import { warn } from "@rayling/core/terminal";
import { present } from "@rayling/reward-manager-registry/values";
import type { PromptDataset } from "../data/prompt-dataset.ts";
import type { PromptRow } from "../data/prompt-row.ts";
import { validationMetricsInTurns } from "../metrics/validation-metrics.ts";
import type { PolicyHandle } from "../policy/policy.ts";
import type { Generation } from "../tracking/tracking-logger.ts";
import type { DumpedRow } from "../record/dumped-rows.ts";
import type { RewardRequests } from "../rollouts/reward-requests.ts";
import { collectRollouts } from "../rollouts/collect-rollouts.ts";
import { extraInfoColumns } from "../samples/columns.ts";
import { promptTextOf } from "../samples/training-sample.ts";
import type { TrainingSample } from "../samples/training-sample.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";

export interface ValidationParts {
  readonly policy: PolicyHandle;
  readonly prompts: PromptDataset;
  readonly rewards: RewardRequests;
  readonly settings: TrainingSettings;
}

export interface ValidationResult {
  /** val-core/..., val-aux/..., and the share that has no valid score as val-aux/invalid_rate. */
  readonly metrics: Record<string, number>;
  readonly generations: readonly Generation[];
  readonly rows: readonly DumpedRow[];
}

/** Answers are there; their scores may still be on the way. */
export interface BegunValidation {
  /** Rejects with what the reward loop failed with. */
  readonly result: Promise<ValidationResult>;
}

/** Resolves when all answers are generated. @param step for the policy's account */
export async function beginValidation(
  { policy, prompts, rewards, settings }: ValidationParts,
  step: number,
): Promise<BegunValidation> {
  const { rollout, run } = settings;
  const { n, doSample, temperature, topP, topK } = rollout.validation;
  const uids = prompts.rows.flatMap(({ index }) => Array.from({ length: n }, () => String(index)));
  const ticket = rewards.open(uids, n, "validation");
  const samples = Array<TrainingSample>(uids.length);
  const request = {
    prompts: prompts.rows.map(({ rawPrompt }) => rawPrompt),
    n,
    doSample,
    temperature,
    topP,
    topK,
    maxResponseLength: rollout.maxResponseLength,
    seed: run.seed,
    account: { phase: "testing", step },
  };
  await ticket.fill(() =>
    collectRollouts(policy, request, run, (moment) => {
      for (const one of moment) {
        const row = one.prompt * n + one.sample;
        const prompt = present(prompts.rows[one.prompt], `prompt ${one.prompt}`);
        const uid = present(uids[row], `the uid of row ${row}`);
        const id = `validation/${uid}/${one.sample}`;
        const sample = { id, uid, prompt, rollout: one, generatedAt: step };
        samples[row] = sample;
        ticket.submit(row, sample);
      }
    }),
  );
  const { request: scores } = ticket;
  const scored = uids.length === 0 ? Promise.resolve([]) : scores.take(uids.length);
  const result = scored.then(() => {
    const outcomes = uids.map((_, row) =>
      present(scores.outcomeOf(row), `the outcome of row ${row}`),
    );
    return resultOf({ prompts, samples, outcomes, uids, n });
  });
  // A caller of `result` sees the rejection; until there is one, it must not count as unhandled.
  result.catch(() => undefined);
  return { result };
}

export interface Validated {
  readonly prompts: PromptDataset;
  readonly samples: readonly TrainingSample[];
  readonly outcomes: readonly SampleOutcome[];
  readonly uids: readonly string[];
  readonly n: number;
}

/** Resolves with verl's metrics of what was scored; the thread does other work meanwhile. */
export async function resultOf({
  prompts,
  samples,
  outcomes,
  uids,
  n,
}: Validated): Promise<ValidationResult> {
  const promptOf = (row: number): PromptRow =>
    present(prompts.rows[Math.floor(row / n)], `the prompt of row ${row}`);
  const mixed = new Map<string, string>();
  // In turns: rewards of the steps that overlap this validation arrive in this thread.
  const metrics = await validationMetricsInTurns(
    {
      dataSources: outcomes.map((_, row) => promptOf(row).dataSource),
      sampleUids: uids,
      infos: {
        ...extraInfoColumns(outcomes),
        reward: outcomes.map((one) => (one.valid ? one.rewardScore : null)),
      },
      valid: outcomes.map(({ valid }) => valid),
    },
    // Mixed values in a judge's extra info must not end a training.
    { onMixed: (variable, question) => mixed.set(variable, question) },
  );
  for (const [variable, question] of mixed) {
    const message = `"${variable}" is a number in some answers to question ${question} of the validation, and something else in others: what is mixed so is left out of its metrics`;
    warn(message);
  }
  return {
    metrics: {
      ...metrics,
      "val-aux/invalid_rate":
        outcomes.filter(({ valid }) => !valid).length / Math.max(1, outcomes.length),
    },
    generations: outcomes.map((outcome, row) => ({
      input: promptTextOf(promptOf(row)),
      output: samples[row]?.rollout.response ?? "",
      score: outcome.valid ? outcome.rewardScore : Number.NaN,
    })),
    rows: outcomes.map((outcome, row) => ({
      sample: present(samples[row], `row ${row}`),
      outcome,
    })),
  };
}
