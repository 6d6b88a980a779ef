/**
 * A policy that really learns, on one CPU core: a small causal transformer on jax-js that reads and
 * writes characters. Everything it does is a function of its settings, its state and the call, so a
 * run under the same seed is the same run, bit by bit.
 *
 * A call sees the weights of the moment at which it came, also where its answers take long and
 * updates come in between.
 */

import { remote } from "@rayling/core";
import type { ActorClass } from "@rayling/core";
import { TrainerInputError } from "../../errors.ts";
import type {
  ChatMessage,
  GenerateRequest,
  LogProbs,
  Policy,
  PolicyInfo,
  PolicyState,
  PolicyUpdate,
  Rollout,
  TokenRows,
  UpdateMetrics,
} from "../policy.ts";
import { generateRollouts, planGeneration } from "./decoding.ts";
import { LearnedWeights, gradientSum } from "./learned-weights.ts";
import { Network } from "./network/network.ts";
import type { Gradient } from "./network/network.ts";
import type { Weights } from "./optimizer/adamw.ts";
import { optimizerSettingsOf } from "./optimizer/optimizer-settings.ts";
import type { OptimizerSettings } from "./optimizer/optimizer-settings.ts";
import { uniformOf } from "../../values/random.ts";
import { requireShape, TokenBatch } from "./rows.ts";
import type { RowLimits } from "./rows.ts";
import { requireCount, tinySettingsOf } from "./tiny-settings.ts";
import type { ResolvedTinySettings, TinySettings } from "./tiny-settings.ts";
import { SupervisedPairs } from "./supervision.ts";
import type { Supervision, SupervisionResult } from "./supervision.ts";
import { CharTokenizer, padTokenId } from "./tokenizer.ts";

export class TinyPolicy implements Policy {
  readonly #settings: ResolvedTinySettings;
  readonly #tokenizer: CharTokenizer;
  readonly #limits: RowLimits;
  readonly #network: Network;
  readonly #learned: LearnedWeights;
  /** Calls of `generate` without a seed, each of which draws from one of its own. */
  #unseeded = 0;

  /** @throws TrainerInputError that names the setting */
  constructor(settings: TinySettings) {
    this.#settings = tinySettingsOf(settings);
    const { contextLength, layers, width, heads, microBatchRows } = this.#settings;
    this.#tokenizer = new CharTokenizer(this.#settings);
    const { vocabularySize } = this.#tokenizer;
    const outputs = vocabularySize;
    const architecture = { vocabularySize, contextLength, layers, width, heads, outputs };
    this.#limits = { vocabularySize, contextLength, microBatchRows };
    this.#network = new Network(architecture);
    this.#learned = new LearnedWeights(this.#settings, architecture);
  }

  async describe(): Promise<PolicyInfo> {
    const { layers, width } = this.#settings;
    return {
      name: `tiny transformer, ${layers} layers of ${width}, ${this.#tokenizer.vocabularySize} tokens`,
      scoresTokens: true,
      trains: true,
      padTokenId,
    };
  }

  async promptLengths(prompts: readonly (readonly ChatMessage[])[]): Promise<number[]> {
    return prompts.map((messages) => this.#tokenizer.encodeMessages(messages).length);
  }

  /** Not a generator function: the answers use the weights at the call, not at the first `next`. */
  generate(request: GenerateRequest): AsyncGenerator<readonly Rollout[], void, undefined> {
    const { contextLength, seed } = this.#settings;
    const plan = planGeneration(request, {
      tokenizer: this.#tokenizer,
      contextLength,
      seed: Math.floor(uniformOf(seed, this.#unseeded) * 2 ** 32),
      version: this.#learned.version,
    });
    if (request.seed === undefined) this.#unseeded += 1;
    const { weights } = this.#learned;
    return generateRollouts(plan, { network: this.#network, weights, tokenizer: this.#tokenizer });
  }

  async logProbs(rows: TokenRows): Promise<LogProbs> {
    const batch = new TokenBatch(rows, this.#limits);
    const scores = {
      logProbs: batch.zeros(),
      entropys: batch.zeros(),
      sumPiSquared: batch.zeros(),
    };
    for (const chunk of batch.chunks(() => true)) {
      const found = this.#network.scores(this.#learned.weights, chunk, batch.temperature);
      batch.gather(found.logProbs, chunk, scores.logProbs.data);
      batch.gather(found.entropys, chunk, scores.entropys.data);
      batch.gather(found.sumPiSquared, chunk, scores.sumPiSquared.data);
    }
    return scores;
  }

  /** @throws TrainerInputError, before any weight has changed */
  async update(update: PolicyUpdate): Promise<UpdateMetrics> {
    const { stepsSchedule = true, learns = true } = update;
    if (!learns) return this.#learned.pass(stepsSchedule);
    return this.#learned.update(this.#gradient(update).gradients, stepsSchedule);
  }

  /**
   * Trains on given answers before the training: AdamW on their cross entropy, with moments of its
   * own that end with the first update. Later calls continue from earlier ones. Version and
   * schedule do not change.
   */
  async supervise(supervision: Supervision): Promise<SupervisionResult> {
    const { pairs, steps, batchSize = 64, lr = 3e-3 } = supervision;
    requireCount("steps", steps);
    if (!(lr > 0 && lr < Infinity))
      throw new TrainerInputError("lr", `lr must be above 0, not ${lr}`);
    const known = new SupervisedPairs(pairs, this.#tokenizer);
    const losses = new Float32Array(steps);
    for (let i = 0; i < steps; i++) {
      const step = this.#learned.warmStartSteps;
      const rows = known.batch({ size: batchSize, seed: this.#settings.seed, step });
      const { gradients, weighted } = this.#gradient(rows);
      losses[i] = weighted;
      this.#learned.warmStart(gradients, lr);
    }
    return { losses };
  }

  /**
   * Replaces the settings of the optimiser, as for a run whose length is known late: the schedule
   * of the learning rate begins anew.
   *
   * @throws TrainerInputError that names the setting
   */
  async setOptim(optim: OptimizerSettings): Promise<void> {
    this.#learned.setOptim(optimizerSettingsOf(optim));
  }

  async state(): Promise<PolicyState> {
    return this.#learned.state({ unseeded: this.#unseeded });
  }

  async setState(state: PolicyState): Promise<void> {
    const { unseeded = 0 } = this.#learned.setState(state, ["unseeded"]);
    this.#unseeded = unseeded;
  }

  #gradient(update: PolicyUpdate): Gradient {
    const { gradLogProbs, gradEntropys } = update;
    const batch = new TokenBatch(update, this.#limits);
    const shape = [batch.count, batch.responseLength];
    requireShape("gradLogProbs", gradLogProbs, shape);
    if (gradEntropys !== undefined) requireShape("gradEntropys", gradEntropys, shape);
    const slopes = [gradLogProbs, ...(gradEntropys === undefined ? [] : [gradEntropys])];
    const parts = function* (network: Network, weights: Weights): Generator<Gradient> {
      for (const chunk of batch.chunks((row) => batch.isTaught(row, slopes))) {
        const logProbs = batch.spread("gradLogProbs", gradLogProbs, chunk);
        const entropys =
          gradEntropys === undefined
            ? new Float32Array(logProbs.length)
            : batch.spread("gradEntropys", gradEntropys, chunk);
        yield network.scoreGradient(weights, chunk, batch.temperature, { logProbs, entropys });
      }
    };
    const { weights } = this.#learned;
    return gradientSum(parts(this.#network, weights), weights);
  }
}

export const TinyPolicyActor: ActorClass<typeof TinyPolicy> = remote(TinyPolicy, {
  methods: { generate: { numReturns: "streaming" } },
});
