/**
 * Columns that advantages and losses need beside rewards: log-probabilities of the policy and of
 * its reference, and values.
 *
 * They are of the policy of the step that trains on the rows, whichever weights generated these:
 * the losses clip by them.
 */

import type { DataProto, Tensor } from "@rayling/data-proto";
import { present } from "@rayling/reward-manager-registry/values";
import { bypassed } from "../algorithms/rollout-correction/rollout-correction.ts";
import type { CriticHandle, LogProbs, PolicyHandle, PolicyInfo } from "../policy/policy.ts";
import { joinColumns } from "../samples/join-columns.ts";
import { answerOf } from "../policy/policy-answers.ts";
import type { PreparedBatch, RolloutBatch, ScoredSample } from "../samples/rollout-batch.ts";
import { columnsOf, tensorIn, tokenRowsOf } from "../samples/columns.ts";
import type { TrainingSample } from "../samples/training-sample.ts";
import { needsReference } from "../settings/training-settings.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import type { StepRecord } from "../record/step-record.ts";

export interface PreparationParts {
  readonly policy: PolicyHandle;
  readonly policyInfo: PolicyInfo;
  readonly referencePolicy: PolicyHandle | undefined;
  readonly critic: CriticHandle | undefined;
  readonly settings: TrainingSettings;
}

/** Columns of rows of one batch, as the policy and the critic were in that step. */
interface BatchColumns {
  readonly step: number;
  readonly data: DataProto;
  /** Row of the data by row of the batch. */
  readonly at: ReadonlyMap<number, number>;
}

/** Samples with their columns, row by row. */
export interface PreparedSamples {
  readonly samples: readonly ScoredSample[];
  readonly data: DataProto;
}

export class PreparedRows {
  readonly #parts: PreparationParts;
  /** Columns of batches of a pool. */
  readonly #columns = new WeakMap<RolloutBatch, BatchColumns>();
  /** Updates of the policy's weights since this run began. */
  #updates = 0;

  constructor(parts: PreparationParts) {
    this.#parts = parts;
  }

  /** Whether old log-probabilities are those of the step's policy, not those of the rollout. */
  get hasOwnLogProbs(): boolean {
    const { settings, policyInfo } = this.#parts;
    const { rolloutCorrection } = settings.algorithm;
    return policyInfo.scoresTokens && rolloutCorrection?.bypassMode !== true;
  }

  /** The policy has other weights now. */
  updated(): void {
    this.#updates += 1;
  }

  /** Whether the policy is unchanged since the columns were computed, and reported its entropy. */
  isFresh({ batch, metaInfo }: DataProto): boolean {
    return batch?.["entropys"] !== undefined && metaInfo["updates"] === this.#updates;
  }

  /** Prepares the rows that are not trained yet. The next step prepares the rest again. */
  async prepare(batch: RolloutBatch, record: StepRecord): Promise<void> {
    const left = [...batch.samples.keys()].filter((row) => batch.isUsed[row] === 0);
    const samples = left.map((row) => present(batch.samples[row], `row ${row}`));
    const data = await this.of(samples, record);
    const at = new Map(left.map((row, index) => [row, index]));
    this.#columns.set(batch, { step: record.step, data, at });
  }

  /** Adds the columns of a batch whose rows are all prepared. Returns whether they were missing. */
  add(batch: PreparedBatch, { step }: StepRecord): boolean {
    if (this.#of(batch, step) !== undefined) return false;
    const at = new Map(batch.samples.map((_, row) => [row, row]));
    this.#columns.set(batch, { step, data: batch.data, at });
    return true;
  }

  /**
   * Returns samples of any batches with their columns. Samples that this step has not prepared are
   * prepared now, and come last.
   */
  async gather(samples: readonly ScoredSample[], record: StepRecord): Promise<PreparedSamples> {
    const { ahead = [], due = [] } = Object.groupBy(samples, ({ batch, row }) =>
      this.#of(batch, record.step)?.at.has(row) === true ? "due" : "ahead",
    );
    const batches = [...new Set(due.map(({ batch }) => batch))];
    const ordered = batches.map((batch) => due.filter((one) => one.batch === batch));
    const parts = ordered.map((ones, index) => {
      const { data, at } = present(
        this.#of(present(batches[index], `batch ${index}`), record.step),
        `batch ${index}`,
      );
      return data.selectIdxs(ones.map(({ row }) => at.get(row) ?? NaN));
    });
    // These were scored before groups that belong to this step.
    if (ahead.length > 0) {
      const others = ahead.map(({ sample }) => sample);
      parts.push(await this.of(others, record));
    }
    const { padTokenId } = this.#parts.policyInfo;
    return { samples: [...ordered.flat(), ...ahead], data: joinColumns(parts, padTokenId) };
  }

  async of(samples: readonly TrainingSample[], record: StepRecord): Promise<DataProto> {
    const { policy, policyInfo, referencePolicy, critic, settings } = this.#parts;
    const { clock } = record;
    const { run } = settings;
    const data = columnsOf(samples, policyInfo.padTokenId);
    const rows = tokenRowsOf(data, settings.rollout.temperature);
    const own = this.#oldLogProbs(data, record);
    const askReference = async (asked: PolicyHandle): Promise<LogProbs> => {
      // One actor in both roles answers one call after the other; each has a time of its own.
      if (asked === policy) await own;
      return await clock.time("ref", () =>
        answerOf(
          "the reference policy, asked for log-probs,",
          asked.logProbs.remote({ ...rows, account: record.account("ref") }),
          run,
        ),
      );
    };
    const [ofPolicy, reference, values] = await Promise.all([
      own,
      referencePolicy && needsReference(settings) && askReference(referencePolicy),
      critic &&
        clock.time("values", () =>
          answerOf(
            "the critic, asked for values,",
            critic.values.remote({ ...rows, account: record.account("values") }),
            run,
          ),
        ),
    ]);
    data.batch = {
      ...data.batch,
      ...ofPolicy,
      ...(reference ? { ref_log_prob: reference.logProbs } : {}),
      ...(values === undefined ? {} : { values }),
    };
    data.metaInfo = { ...data.metaInfo, updates: this.#updates };
    return data;
  }

  /**
   * Asks the policy for its log-probabilities. If it reports none, those of the rollout stand for
   * them, or 0, and its entropy is 0. In the bypass those of the rollout are used.
   */
  async #oldLogProbs(data: DataProto, record: StepRecord): Promise<Record<string, Tensor>> {
    const { policy, policyInfo, settings } = this.#parts;
    const { rolloutCorrection } = settings.algorithm;
    const rollout = data.batch?.["rollout_log_probs"];
    const none = policyInfo.scoresTokens ? {} : { entropys: zerosLike(data) };
    if (rolloutCorrection?.bypassMode === true) {
      return { old_log_probs: bypassed(rollout, rolloutCorrection).oldLogProbs, ...none };
    }
    if (!policyInfo.scoresTokens) return { old_log_probs: rollout ?? zerosLike(data), ...none };
    const rows = tokenRowsOf(data, settings.rollout.temperature);
    const account = record.account("old_log_prob");
    const { logProbs, entropys, sumPiSquared } = await record.clock.time("old_log_prob", () =>
      answerOf(
        "the policy, asked for log-probs,",
        policy.logProbs.remote({ ...rows, account }),
        settings.run,
      ),
    );
    return {
      old_log_probs: logProbs,
      entropys,
      ...(sumPiSquared === undefined ? {} : { sum_pi_squared: sumPiSquared }),
    };
  }

  /** Returns the columns if they are of this step. */
  #of(batch: RolloutBatch, step: number): BatchColumns | undefined {
    const columns = this.#columns.get(batch);
    return columns?.step === step ? columns : undefined;
  }
}

/** Returns zeros in the shape of the responses. */
function zerosLike(data: DataProto): Tensor {
  const { shape, data: ids } = tensorIn(data, "responses");
  return { dtype: "float32", shape, data: new Float32Array(ids.length) };
}
