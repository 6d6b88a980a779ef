/**
 * The effect of a batch with rewards on the critic and on the policy: advantages, then updates in
 * mini-batches. `algorithms/` has the formulas; this file asks the actors in verl's order.
 */

import { asTensor, DataProto } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { optional } from "@rayling/reward-manager-registry/values";
import { computeAdvantage } from "../algorithms/advantages/compute.ts";
import type { AdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import { createKlController } from "../algorithms/kl.ts";
import type { KlController } from "../algorithms/kl.ts";
import { aggLoss } from "../algorithms/losses/aggregation.ts";
import type { PolicyLoss } from "../algorithms/losses/policy-loss.ts";
import { valueLoss } from "../algorithms/losses/value-loss.ts";
import { countOf, maskedMean } from "../algorithms/masked-sums.ts";
import { matrixOf } from "../algorithms/matrix.ts";
import { validMask } from "../algorithms/invalid-scores.ts";
import type { Account, CriticHandle, LogProbs, PolicyHandle, TokenRows } from "../policy/policy.ts";
import { shuffled, uniformOf } from "../values/random.ts";
import { actorGradients } from "./actor-gradients.ts";
import { batchInfoOf } from "./batch-info.ts";
import type { CollectedMetrics } from "../record/collected-metrics.ts";
import { answerOf } from "../policy/policy-answers.ts";
import { componentMetrics, componentsOf } from "./reward-components.ts";
import { tensorIn, tokenRowsOf, validIn } from "../samples/columns.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";

/** Rows that are trained on together. */
export interface ScoredRows {
  /** Columns with old_log_probs and, if needed, ref_log_prob and values. */
  readonly data: DataProto;
  /** Token_level_scores, [rows, R]. */
  readonly scores: Tensor;
  /** Whether there is something to learn from: a score, and for remax one of the greedy answer. */
  readonly valid: readonly boolean[];
  readonly samples: readonly ScoredSample[];
  /** Rewards of remax's greedy answers. */
  readonly rewardBaselines?: readonly number[] | undefined;
}

/**
 * One call for updates: whether the step has no updates after them, so that the learning rate goes
 * on with the last one.
 */
export interface UpdateContext {
  readonly isLast: boolean;
  readonly account: Account;
}

export interface ActorUpdateContext extends UpdateContext {
  readonly isFresh: boolean;
  readonly scoresTokens: boolean;
  /** Number of the mini-batch in the step: random draws depend on it and not on earlier runs. */
  readonly partOfStep: number;
}

/**
 * Columns token_level_scores, token_level_rewards, advantages, returns and loss_mask, which is the
 * response_mask of the rollouts; with a rollout correction also rollout_is_weights and a new
 * response_mask.
 */
export interface Learnable {
  readonly data: DataProto;
  /** Rows to learn from: all of `data`, or those that PF-PPO drew. */
  readonly drawn: DataProto;
}

export class Learner {
  readonly #policy: PolicyHandle;
  readonly #critic: CriticHandle | undefined;
  readonly #settings: TrainingSettings;
  readonly #advantages: AdvantageRegistry;
  readonly #policyLoss: PolicyLoss;
  #klController: KlController;

  constructor(
    policy: PolicyHandle,
    critic: CriticHandle | undefined,
    settings: TrainingSettings,
    parts: { readonly advantages: AdvantageRegistry; readonly policyLoss: PolicyLoss },
  ) {
    this.#policy = policy;
    this.#critic = critic;
    this.#settings = settings;
    this.#advantages = parts.advantages;
    this.#policyLoss = parts.policyLoss;
    this.#klController = createKlController(settings.algorithm.klCtrl);
  }

  /** The coefficient of KL in the reward, which an adaptive controller changes. */
  get klCoef(): number {
    return this.#klController.value;
  }

  set klCoef(klCoef: number) {
    this.#klController = createKlController({ ...this.#settings.algorithm.klCtrl, klCoef });
  }

  /**
   * Records verl's `actor/entropy` over all responses, before the step's updates; nothing where the
   * policy reported none, or no token counts.
   */
  recordEntropy(data: DataProto, metrics: CollectedMetrics): void {
    const entropys = data.batch?.["entropys"];
    if (entropys === undefined) return;
    const matrix = matrixOf("entropys", entropys);
    const mask = matrixOf("responseMask", tensorIn(data, "response_mask"), matrix);
    if (countOf(mask) === 0) return;
    const { lossAggMode, globalBatchInfo } = this.#settings.actor;
    metrics.add("actor/entropy", aggLoss(matrix, mask, lossAggMode, globalBatchInfo).loss);
  }

  /**
   * Throws TrainerInputError, and TrainerStateError where a component of gdpo is missing.
   *
   * @param step for what PF-PPO draws
   */
  advantagesOf(
    { data, scores, valid, samples, rewardBaselines }: ScoredRows,
    step: number,
    metrics: CollectedMetrics,
  ): Learnable {
    const { algorithm, run } = this.#settings;
    const batch = data.batch ?? {};
    const baselines = rewardBaselines && asTensor(Float32Array.from(rewardBaselines));
    const components = componentsOf(samples, valid, algorithm.gdpoRewardKeys);
    let draws = 0;
    const computed = computeAdvantage(
      {
        tokenLevelScores: scores,
        responseMask: tensorIn(data, "response_mask"),
        groups: samples.map(({ sample }) => sample.uid),
        valid,
        ...optional("values", batch["values"]),
        ...optional("rewardBaselines", baselines),
        ...optional("oldLogProbs", batch["old_log_probs"]),
        ...optional("refLogProb", batch["ref_log_prob"]),
        ...optional("rolloutLogProbs", batch["rollout_log_probs"]),
        ...optional("sumPiSquared", batch["sum_pi_squared"]),
        ...optional("rewardComponents", components),
      },
      algorithm,
      {
        registry: this.#advantages,
        klController: this.#klController,
        random: () => uniformOf(run.seed, step, draws++),
      },
    );
    metrics.addAll(computed.metrics);
    if (algorithm.advEstimator === "gdpo") metrics.addAll(componentMetrics(components, valid));
    const learnable = new DataProto({
      ...data.toData(),
      batch: {
        ...batch,
        token_level_scores: scores,
        token_level_rewards: computed.tokenLevelRewards,
        loss_mask: tensorIn(data, "response_mask"),
        response_mask: computed.responseMask,
        advantages: computed.advantages,
        returns: computed.returns,
        ...optional("rollout_is_weights", computed.rolloutIsWeights),
      },
      nonTensorBatch: { ...data.nonTensorBatch, valid },
    });
    const { drawnRows } = computed;
    const drawn = drawnRows === undefined ? learnable : learnable.selectIdxs([...drawnRows]);
    return { data: learnable, drawn };
  }

  /**
   * Updates in mini-batches, `ppoEpochs` times. A mini-batch without a token to learn from changes
   * nothing, and only its learning rate is recorded.
   */
  async updateCritic(
    data: DataProto,
    metrics: CollectedMetrics,
    { isLast, account }: UpdateContext,
  ): Promise<void> {
    const critic = this.#critic;
    if (critic === undefined) return;
    const { run } = this.#settings;
    const { ppoMiniBatchSize, ppoEpochs } = this.#settings.criticOptions;
    const rows = miniBatchRows(data.length, ppoMiniBatchSize * this.#settings.rollout.n, ppoEpochs);
    for (const [index, { start, stop }] of rows.entries()) {
      const part = data.slice(start, stop);
      const tokens = { ...tokenRowsOf(part, this.#settings.rollout.temperature), account };
      const stepsSchedule = isLast && index === rows.length - 1;
      const learns = hasTokens(part);
      if (!learns && !stepsSchedule) continue;
      const gradValues = learns
        ? await this.#valueGradients(critic, part, tokens, metrics)
        : zerosFor(part);
      const update = { ...tokens, gradValues, stepsSchedule, learns };
      const { gradNorm, lr } = await answerOf(
        "the critic, asked for an update,",
        critic.update.remote(update),
        run,
      );
      metrics.addAll({ ...(learns ? { "critic/grad_norm": gradNorm } : {}), "critic/lr": lr });
    }
  }

  /**
   * Updates in mini-batches, `ppoEpochs` times. A mini-batch without a token to learn from changes
   * nothing, and only its learning rate is recorded.
   *
   * @param isFresh whether old_log_probs are of the policy as it is: then the first update asks for
   *   no others
   * @param scoresTokens whether the policy can be asked for log-probabilities; else those of the
   *   rollout stand for them
   */
  async updateActor(
    data: DataProto,
    metrics: CollectedMetrics,
    { isLast, isFresh, scoresTokens, partOfStep, account }: ActorUpdateContext,
  ): Promise<void> {
    const { actor, rollout, run, adaptiveMiniBatch } = this.#settings;
    // An adaptive mini-batch was cut when its rows were taken.
    const size = adaptiveMiniBatch ? data.length : actor.ppoMiniBatchSize * rollout.n;
    const rows = miniBatchRows(data.length, size, actor.ppoEpochs);
    for (const [index, { start, stop }] of rows.entries()) {
      const part = data.slice(start, stop);
      const tokens = tokenRowsOf(part, rollout.temperature);
      const stepsSchedule = isLast && index === rows.length - 1;
      const learns = hasTokens(part);
      if (!learns && !stepsSchedule) continue;
      const gradients = learns
        ? actorGradients(
            part,
            !scoresTokens || (index === 0 && isFresh)
              ? { logProbs: tensorIn(part, "old_log_probs"), entropys: tensorIn(part, "entropys") }
              : await this.#logProbs(tokens, account),
            {
              actor,
              policyLoss: this.#policyLoss,
              permutation: (count) =>
                shuffled(count, (place) =>
                  uniformOf(run.seed, account.step, partOfStep, index, place),
                ),
            },
            metrics,
          )
        : { gradLogProbs: zerosFor(part) };
      const update = { ...tokens, ...gradients, stepsSchedule, learns, account };
      const { gradNorm, lr } = await answerOf(
        "the policy, asked for an update,",
        this.#policy.update.remote(update),
        run,
      );
      metrics.addAll({ ...(learns ? { "actor/grad_norm": gradNorm } : {}), "actor/lr": lr });
    }
  }

  /** Returns the gradients of a mini-batch for the critic. */
  async #valueGradients(
    critic: CriticHandle,
    part: DataProto,
    tokens: TokenRows & { readonly account: Account },
    metrics: CollectedMetrics,
  ): Promise<Tensor> {
    const { criticOptions, run } = this.#settings;
    const asked = critic.values.remote(tokens);
    const vpreds = await answerOf("the critic, asked for values,", asked, run);
    const { loss, clipfrac, gradVpreds } = valueLoss(
      {
        vpreds,
        values: tensorIn(part, "values"),
        returns: tensorIn(part, "returns"),
        valid: validIn(part),
        responseMask: tensorIn(part, "response_mask"),
      },
      { ...criticOptions, ...batchInfoOf(part) },
    );
    metrics.addAll({
      "critic/vf_loss": loss,
      "critic/vf_clipfrac": clipfrac,
      "critic/vpred_mean": meanOfValid(vpreds, part),
    });
    return gradVpreds;
  }

  /** Asks for log-probabilities; the time counts as part of the update. */
  async #logProbs(tokens: TokenRows, account: Account): Promise<LogProbs> {
    const own = { ...account, phase: "update_actor_log_prob" };
    const answer = this.#policy.logProbs.remote({ ...tokens, account: own });
    return await answerOf("the policy, asked for log-probs,", answer, this.#settings.run);
  }
}

interface RowRange {
  readonly start: number;
  readonly stop: number;
}

/** The last one may be smaller. */
function miniBatchRows(rows: number, size: number, epochs: number): RowRange[] {
  const count = Math.ceil(rows / size);
  return Array.from({ length: count * epochs }, (_, index) => {
    const start = (index % count) * size;
    return { start, stop: Math.min(start + size, rows) };
  });
}

/**
 * A token of a valid row that is not rejected. Without one there is no step: of a gradient of 0,
 * too, an optimiser would make one, by its moments and its weight decay.
 */
function hasTokens(part: DataProto): boolean {
  const mask = matrixOf("responseMask", tensorIn(part, "response_mask"));
  return countOf(validMask(mask, validIn(part))) > 0;
}

/** Returns the gradients of an update that only goes on with the learning rate. */
function zerosFor(part: DataProto): Tensor {
  const { shape, data } = tensorIn(part, "responses");
  return asTensor(new Float32Array(data.length), shape);
}

function meanOfValid(values: Tensor, data: DataProto): number {
  const matrix = matrixOf("values", values);
  const mask = matrixOf("responseMask", tensorIn(data, "response_mask"), matrix);
  return maskedMean(matrix, validMask(mask, validIn(data)));
}
