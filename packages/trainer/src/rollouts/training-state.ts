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
import type { RewardRequests, RewardTicket } from "./reward-requests.ts";
import { isGivenUp } from "../samples/rollout-batch.ts";
import type { EarlierFailures, RolloutBatch } from "../samples/rollout-batch.ts";
import type { TrainingSample } from "../samples/training-sample.ts";
import { needsBaselines } from "../settings/training-settings.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";

/** The validation with which later ones of the run are compared. */
export interface FirstValidation {
  /** Number of the last finished step: 0 before training. */
  readonly step: number;
  /** Metrics of the validation by their names. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Tells its prompts from others, whose metrics are no measure for these. */
  readonly fingerprint: string;
}

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
  /** Undefined: there was none, or the checkpoint is of a version that kept none. */
  readonly firstValidation?: FirstValidation | undefined;
  /**
   * Asks for the missing rewards of an outstanding batch of a checkpoint, when somebody takes it.
   * Undefined: all were asked for.
   */
  readonly ask?: ((batch: RolloutBatch) => void) | undefined;
}

interface KeptTrainer {
  readonly format: number;
  readonly finishedSteps: number;
  /** Position of the prompts that come next. */
  readonly position: LoaderPosition;
  readonly klCoef: number;
  /** Size of the next mini-batch where it adapts. */
  readonly miniBatchSize?: number;
  /** Versions before this one wrote none. */
  readonly firstValidation?: FirstValidation;
  /** Versions of the reward functions that scored the rollouts. Earlier checkpoints have none. */
  readonly rewardVersions?: readonly string[];
  /** Names the file with the reference policy's weights. Earlier checkpoints have none. */
  readonly referenceSha256?: string;
}

/** Facts of a training beside its place. */
export type KeptFacts = Pick<KeptTrainer, "klCoef"> & {
  /** Undefined: no reference policy is used, or it gives no weights. */
  readonly referenceSha256: string | undefined;
};

/** A batch of rollouts as a checkpoint keeps it. */
export interface KeptBatch {
  readonly number: number;
  readonly n: number;
  readonly generatedAt: number;
  /** In whole groups. */
  readonly samples: readonly KeptSample[];
  /** Greedy answer of each group, for remax. */
  readonly baselines?: readonly KeptSample[] | undefined;
  /** Failures of the rows that are not kept. Versions before this one wrote none. */
  readonly earlierFailures?: EarlierFailures | undefined;
}

/** A rollout as a checkpoint keeps it. */
export interface KeptSample {
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
  { klCoef, referenceSha256 }: KeptFacts,
  rewards: RewardRequests,
): Pick<Checkpoint, "trainer" | "outstanding"> {
  const trainer: KeptTrainer = {
    format: FORMAT,
    finishedSteps: training.finishedSteps,
    position: prompts.positionOf(training.nextBatch),
    klCoef,
    ...optional("miniBatchSize", training.miniBatchSize),
    ...optional("firstValidation", training.firstValidation),
    rewardVersions: rewards.functions.versions,
    ...optional("referenceSha256", referenceSha256),
  };
  const kept = (batch: RolloutBatch): KeptBatch => keptBatch(batch, prompts, rewards);
  return { trainer, outstanding: training.outstanding.map(kept) };
}

function keptBatch(
  batch: RolloutBatch,
  prompts: PromptLoader,
  requests: RewardRequests,
): KeptBatch {
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
    rollout: keptOf(rollout),
    generatedMs: ofMs,
    ...(outcome === undefined ? {} : { outcome: keptOf(outcome) }),
  });
  const samples = batch.samples.flatMap((sample, row) =>
    isUsed[row] === 1
      ? []
      : [kept(sample, generatedMs[row] ?? 0, outcomeOf(batch.rewards, row, requests))],
  );
  const greedy = baselines?.samples.flatMap((sample, group) =>
    isUsed[group * n] === 1 ? [] : [kept(sample, 0, outcomeOf(baselines.request, group, requests))],
  );
  return {
    number,
    n,
    generatedAt,
    samples,
    ...(greedy === undefined ? {} : { baselines: greedy }),
    earlierFailures: failuresOfUsed(batch),
  };
}

/**
 * Outcome of a row as a checkpoint keeps it. Failures that end this run would end each run that
 * resumes: it asks for their rewards again, of whole groups where these are scored together.
 */
function outcomeOf(
  request: RewardRequest,
  row: number,
  requests: RewardRequests,
): SampleOutcome | undefined {
  const outcome = request.scoredOutcomeOf(row);
  if (!requests.isOverLimit(request)) return outcome;
  const size = requests.loop.traits.scoresGroups ? request.groupSize : 1;
  const first = row - (row % size);
  const together = Array.from({ length: size }, (_, at) => request.scoredOutcomeOf(first + at));
  return together.some((one) => one?.valid === false) ? undefined : outcome;
}

/** Failures of the rows that a checkpoint does not keep. */
function failuresOfUsed(batch: RolloutBatch): EarlierFailures {
  const { n, baselines, isUsed, rewards, earlierFailures } = batch;
  const used = [...isUsed.keys()].filter((row) => isUsed[row] === 1);
  const groups = used.filter((row) => row % n === 0).map((row) => row / n);
  return {
    samples: withFailures(
      earlierFailures?.samples,
      used.map((row) => rewards.outcomeOf(row)),
    ),
    baselines: withFailures(
      earlierFailures?.baselines,
      groups.map((group) => baselines?.request.outcomeOf(group)),
    ),
  };
}

function withFailures(
  before: Readonly<Record<string, number>> = {},
  outcomes: readonly (SampleOutcome | undefined)[],
): Record<string, number> {
  const counts: Record<string, number> = { ...before };
  for (const outcome of outcomes) {
    if (outcome?.valid !== false || isGivenUp(outcome)) continue;
    const { code } = outcome.error;
    counts[code] = (counts[code] ?? 0) + 1;
  }
  return counts;
}

/** With a text in place of each part that no checkpoint carries. */
function keptOf<T>(value: T): T {
  return keepable(value) as T;
}

/** The words of a checkpoint about its training. Nothing is asked for yet. */
export interface KeptPlace extends Omit<TrainingStart, "outstanding" | "ask"> {
  readonly klCoef: number;
  readonly batches: readonly KeptBatch[];
  readonly rewardVersions: readonly string[] | undefined;
  readonly referenceSha256: string | undefined;
}

/**
 * Throws TrainerStateError for a state of another format, TrainerInputError where it is one of
 * other data.
 */
export function keptPlaceOf(
  { trainer, outstanding = [] }: Checkpoint,
  prompts: PromptLoader,
): KeptPlace {
  const { format, position, ...kept } = trainer as KeptTrainer;
  if (format !== FORMAT) {
    throw new TrainerStateError(
      "OTHER_FORMAT",
      `the checkpoint's trainer.json has the format ${format}, and this version reads ${FORMAT}`,
    );
  }
  const nextBatch = prompts.numberOf(position);
  const batches = outstanding as readonly KeptBatch[];
  const { finishedSteps, miniBatchSize, firstValidation } = kept;
  const { klCoef, rewardVersions, referenceSha256 } = kept;
  const place = { finishedSteps, nextBatch, miniBatchSize, firstValidation };
  return { ...place, klCoef, batches, rewardVersions, referenceSha256 };
}

/** Throws TrainerInputError where rollouts of a checkpoint cannot be trained on with these. */
export function checkOutstanding(batches: readonly KeptBatch[], settings: TrainingSettings): void {
  const { n } = settings.rollout;
  const { advEstimator } = settings.algorithm;
  const left = batches.filter(({ samples }) => samples.length > 0);
  // Without greedy answers to compare with, these rollouts would be trained on and teach nothing;
  // answers of other weights than theirs are no measure for them.
  if (needsBaselines(settings) && left.some(({ baselines }) => baselines === undefined)) {
    throw new TrainerInputError(
      "algorithm.advEstimator",
      `algorithm.advEstimator is ${advEstimator}, and the checkpoint has rollouts without greedy answers, which are still to be trained, of a run with another estimator: resume with that one`,
    );
  }
  // Steps and mini-batches are counted in groups of one size.
  const other = left.find((batch) => batch.n !== n);
  if (other === undefined) return;
  throw new TrainerInputError(
    "rollout.n",
    `rollout.n is ${n}, and the checkpoint has rollouts that are still to be trained of a run where it was ${other.n}: resume with ${other.n}`,
  );
}

/**
 * Returns the batches with the scores that are known, and what asks for the others that the
 * training uses: a schedule may take some batches later, and others never.
 */
export function restoredBatches(
  batches: readonly KeptBatch[],
  prompts: PromptLoader,
  rewards: RewardRequests,
  settings: TrainingSettings,
): Required<Pick<TrainingStart, "outstanding" | "ask">> {
  const asks = new Map<RolloutBatch, () => void>();
  const outstanding = batches.map(({ baselines, ...kept }) => {
    const used = needsBaselines(settings) ? baselines : undefined;
    const { batch, ask } = restoredBatch({ ...kept, baselines: used }, prompts, rewards);
    asks.set(batch, ask);
    return batch;
  });
  const ask = (batch: RolloutBatch): void => {
    asks.get(batch)?.();
    asks.delete(batch);
  };
  return { outstanding, ask };
}

function restoredBatch(
  kept: KeptBatch,
  prompts: PromptLoader,
  rewards: RewardRequests,
): { readonly batch: RolloutBatch; readonly ask: () => void } {
  const { number, n, generatedAt, baselines, earlierFailures } = kept;
  const { rows, uids, epoch } = prompts.batch(number);
  const nowMs = performance.timeOrigin + performance.now();
  const uidOf = (one: KeptSample): string =>
    present(uids[one.prompt], `the uid of prompt ${one.prompt}`);
  const sampleOf = (one: KeptSample, id: string, uid: string): TrainingSample => ({
    id,
    uid,
    prompt: present(rows[one.prompt], `prompt ${one.prompt}`),
    rollout: one.rollout,
    generatedAt,
  });
  const samples = kept.samples.map((one) =>
    sampleOf(one, `${uidOf(one)}/${one.rollout.sample}`, uidOf(one)),
  );
  // Baselines belong to no group.
  const greedy = baselines?.map((one) =>
    sampleOf(one, `${uidOf(one)}/greedy`, `${uidOf(one)}/greedy`),
  );
  // Failures may be a share of the whole batch, as it was before the checkpoint.
  const { samples: ofSamples = {}, baselines: ofBaselines = {} } = earlierFailures ?? {};
  const ticketOf = (
    ones: readonly TrainingSample[],
    keptOnes: readonly KeptSample[],
    groupSize: number,
    failures: Readonly<Record<string, number>>,
  ): RewardTicket => {
    const earlier = { rows: uids.length * groupSize - ones.length, failures };
    const own = ones.map(({ uid }) => uid);
    return withKnown(rewards.restore(own, groupSize, earlier), keptOnes);
  };
  const ofGreedy = greedy && ticketOf(greedy, baselines ?? [], 1, ofBaselines);
  const ticket = ticketOf(samples, kept.samples, n, ofSamples);
  const batch = {
    samples,
    n,
    number,
    epoch,
    generatedAt,
    baselines: greedy && ofGreedy && new Baselines(greedy, ofGreedy.request),
    rewards: ticket.request,
    // No time counts while nothing ran: for this run, a rollout was generated when it was read.
    generatedMs: kept.samples.map(({ generatedMs }) => Math.max(generatedMs, nowMs)),
    isUsed: new Uint8Array(samples.length),
    earlierFailures,
  };
  const ask = (): void => {
    if (greedy !== undefined) ofGreedy?.submitMissing(greedy);
    ticket.submitMissing(samples);
  };
  return { batch, ask };
}

/** Sets the scores that the checkpoint has. */
function withKnown(ticket: RewardTicket, kept: readonly KeptSample[]): RewardTicket {
  for (const [row, { outcome }] of kept.entries()) {
    if (outcome !== undefined) ticket.request.know(row, outcome);
  }
  return ticket;
}
