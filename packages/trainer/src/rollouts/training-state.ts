/**
 * The place of a training as plain data for a checkpoint, and back: finished steps, the next
 * prompts, and every rollout that was generated and is not trained, with its score if it has one.
 *
 * Restored rollouts are not generated again, and known scores are not asked for again: no sample is
 * lost, trained twice or paid for twice.
 */

import type { RewardRequest, SampleOutcome } from "@rayling/reward-loop";
import { optional, present } from "@rayling/reward-manager-registry/values";
import type { Checkpoint } from "../checkpoint/checkpoint.ts";
import { keepable } from "../checkpoint/plain-data.ts";
import type { LoaderPosition, PromptLoader } from "../data/prompt-loader.ts";
import { TrainerInputError, TrainerStateError } from "../errors.ts";
import type { Rollout } from "../policy/policy.ts";
import { Baselines } from "../samples/baselines.ts";
import type { RewardRequests } from "./reward-requests.ts";
import type { RolloutBatch } from "../samples/rollout-batch.ts";
import type { TrainingSample } from "../samples/training-sample.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";

/** The place where a training begins or resumes, as a checkpoint keeps it. */
export interface TrainingStart {
  /** Number of steps that are trained. */
  readonly finishedSteps: number;
  /** Number of the prompt batch that is generated next. */
  readonly nextBatch: number;
  /** Batches with rows that are not trained yet, oldest first. */
  readonly outstanding: readonly RolloutBatch[];
  /** Groups of the next mini-batch where the size adapts. Undefined: `ppoMiniBatchSize`. */
  readonly miniBatchSize?: number | undefined;
}

interface KeptTrainer {
  readonly format: number;
  readonly finishedSteps: number;
  /** Position of the prompts that come next. */
  readonly position: LoaderPosition;
  readonly klCoef: number;
  /** Size of the next mini-batch where it adapts. */
  readonly miniBatchSize?: number;
}

/** A batch of rollouts as a checkpoint keeps it. */
export interface KeptBatch {
  readonly number: number;
  readonly n: number;
  readonly generatedAt: number;
  /** In whole groups. */
  readonly samples: readonly KeptSample[];
  /** Greedy answer of each group, for remax. */
  readonly baselines?: readonly KeptSample[] | undefined;
}

interface KeptSample {
  /** Number of its prompt in the batch. */
  readonly prompt: number;
  readonly rollout: Rollout;
  readonly generatedMs: number;
  /** Undefined as long as it is not scored. */
  readonly outcome?: SampleOutcome | undefined;
}

const FORMAT: number = 1;

export function keptTraining(
  training: TrainingStart,
  prompts: PromptLoader,
  klCoef: number,
): Pick<Checkpoint, "trainer" | "outstanding"> {
  const trainer: KeptTrainer = {
    format: FORMAT,
    finishedSteps: training.finishedSteps,
    position: prompts.positionOf(training.nextBatch),
    klCoef,
    ...optional("miniBatchSize", training.miniBatchSize),
  };
  return { trainer, outstanding: training.outstanding.map((batch) => keptBatch(batch, prompts)) };
}

function keptBatch(batch: RolloutBatch, prompts: PromptLoader): KeptBatch {
  const { number, n, generatedAt, baselines, isUsed, generatedMs } = batch;
  const { rows } = prompts.batch(number);
  const kept = (
    { prompt, rollout }: TrainingSample,
    ofMs: number,
    outcome: SampleOutcome | undefined,
  ): KeptSample => ({
    prompt: rows.indexOf(prompt),
    // Whatever a policy or a judge tells besides must be savable: a checkpoint that fails would end
    // the training.
    rollout: keepable(rollout) as Rollout,
    generatedMs: ofMs,
    ...(outcome === undefined ? {} : { outcome: keepable(outcome) as SampleOutcome }),
  });
  const samples = batch.samples.flatMap((sample, row) =>
    isUsed[row] === 1
      ? []
      : [kept(sample, generatedMs[row] ?? 0, batch.rewards.scoredOutcomeOf(row))],
  );
  const greedy = baselines?.samples.flatMap((sample, group) =>
    isUsed[group * n] === 1 ? [] : [kept(sample, 0, baselines.request.scoredOutcomeOf(group))],
  );
  return {
    number,
    n,
    generatedAt,
    samples,
    ...(greedy === undefined ? {} : { baselines: greedy }),
  };
}

/** What a checkpoint says of its training. Nothing is asked for yet. */
export interface KeptPlace extends Omit<TrainingStart, "outstanding"> {
  readonly klCoef: number;
  readonly batches: readonly KeptBatch[];
}

/**
 * Throws TrainerStateError for a state of another format, TrainerInputError where it is one of
 * other data.
 */
export function keptPlaceOf(
  { trainer, outstanding = [] }: Checkpoint,
  prompts: PromptLoader,
): KeptPlace {
  const { format, finishedSteps, position, klCoef, miniBatchSize } = trainer as KeptTrainer;
  if (format !== FORMAT) {
    throw new TrainerStateError(
      "OTHER_FORMAT",
      `the checkpoint's trainer.json has the format ${format}, and this version reads ${FORMAT}`,
    );
  }
  const nextBatch = prompts.numberOf(position);
  const batches = outstanding as readonly KeptBatch[];
  return { finishedSteps, nextBatch, miniBatchSize, klCoef, batches };
}

/** Throws TrainerInputError where rollouts of a checkpoint cannot be trained on with these. */
export function checkOutstanding(
  batches: readonly KeptBatch[],
  { rollout: { n } }: TrainingSettings,
): void {
  // Steps and mini-batches are counted in groups of one size.
  const other = batches.find((batch) => batch.samples.length > 0 && batch.n !== n);
  if (other === undefined) return;
  throw new TrainerInputError(
    "rollout.n",
    `rollout.n is ${n}, and the checkpoint has rollouts that are still to be trained of a run where it was ${other.n}: resume with ${other.n}`,
  );
}

/** Asks for the rewards that are not known. */
export function restoredBatches(
  batches: readonly KeptBatch[],
  prompts: PromptLoader,
  rewards: RewardRequests,
): RolloutBatch[] {
  return batches.map((batch) => restoredBatch(batch, prompts, rewards));
}

function restoredBatch(
  kept: KeptBatch,
  prompts: PromptLoader,
  rewards: RewardRequests,
): RolloutBatch {
  const { number, n, generatedAt, baselines } = kept;
  const { rows, uids, epoch } = prompts.batch(number);
  const nowMs = performance.timeOrigin + performance.now();
  const sampleOf = (one: KeptSample, id: string, uid: string): TrainingSample => ({
    id,
    uid,
    prompt: present(rows[one.prompt], `prompt ${one.prompt}`),
    rollout: one.rollout,
    generatedAt,
  });
  const samples = kept.samples.map((one) => {
    const uid = present(uids[one.prompt], `the uid of prompt ${one.prompt}`);
    return sampleOf(one, `${uid}/${one.rollout.sample}`, uid);
  });
  // Baselines belong to no group.
  const greedy = baselines?.map((one) => {
    const id = `${present(uids[one.prompt], `the uid of prompt ${one.prompt}`)}/greedy`;
    return sampleOf(one, id, id);
  });
  return {
    samples,
    n,
    number,
    epoch,
    generatedAt,
    baselines: greedy && new Baselines(greedy, asked(greedy, baselines ?? [], 1, rewards)),
    rewards: asked(samples, kept.samples, n, rewards),
    // No time counts while nothing ran: for this run, a rollout was generated when it was read.
    generatedMs: kept.samples.map(({ generatedMs }) => Math.max(generatedMs, nowMs)),
    isUsed: new Uint8Array(samples.length),
  };
}

/** For what was not scored. */
function asked(
  samples: readonly TrainingSample[],
  kept: readonly KeptSample[],
  groupSize: number,
  rewards: RewardRequests,
): RewardRequest {
  const uids = samples.map(({ uid }) => uid);
  const ticket = rewards.open(uids, groupSize, "training");
  for (const [row, sample] of samples.entries()) {
    const outcome = kept[row]?.outcome;
    if (outcome === undefined) ticket.submit(row, sample);
    else ticket.request.know(row, outcome);
  }
  return ticket.request;
}
