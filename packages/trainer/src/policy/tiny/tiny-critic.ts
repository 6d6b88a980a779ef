/**
 * The value of each token before it is written, by the same transformer as the policy with one
 * output at each position, and weights of its own.
 */

import { remote } from "@rayling/core";
import type { ActorClass } from "@rayling/core";
import type { Tensor } from "@rayling/data-proto";
import type { Critic, CriticUpdate, PolicyState, TokenRows, UpdateMetrics } from "../policy.ts";
import { LearnedWeights, gradientSum } from "./learned-weights.ts";
import { Network } from "./network/network.ts";
import type { Gradient } from "./network/network.ts";
import type { Weights } from "./optimizer/adamw.ts";
import { requireShape, TokenBatch } from "./rows.ts";
import type { RowLimits } from "./rows.ts";
import { tinySettingsOf } from "./tiny-settings.ts";
import type { TinySettings } from "./tiny-settings.ts";
import { CharTokenizer } from "./tokenizer.ts";

export class TinyCritic implements Critic {
  readonly #limits: RowLimits;
  readonly #network: Network;
  readonly #learned: LearnedWeights;

  /** @throws TrainerInputError that names the setting */
  constructor(settings: TinySettings) {
    const resolved = tinySettingsOf(settings);
    const { contextLength, layers, width, heads, microBatchRows } = resolved;
    const { vocabularySize } = new CharTokenizer(resolved);
    const architecture = { vocabularySize, contextLength, layers, width, heads, outputs: 1 };
    this.#limits = { vocabularySize, contextLength, microBatchRows };
    this.#network = new Network(architecture);
    this.#learned = new LearnedWeights(resolved, architecture);
  }

  async values(rows: TokenRows): Promise<Tensor<"float32">> {
    const batch = new TokenBatch(rows, this.#limits);
    const values = batch.zeros();
    for (const chunk of batch.chunks(() => true)) {
      batch.gather(this.#network.values(this.#learned.weights, chunk), chunk, values.data);
    }
    return values;
  }

  /** @throws TrainerInputError, before any weight has changed */
  async update(update: CriticUpdate): Promise<UpdateMetrics> {
    const { gradValues, stepsSchedule = true, learns = true } = update;
    if (!learns) return this.#learned.pass(stepsSchedule);
    const batch = new TokenBatch(update, this.#limits);
    requireShape("gradValues", gradValues, [batch.count, batch.responseLength]);
    const parts = function* (network: Network, weights: Weights): Generator<Gradient> {
      for (const chunk of batch.chunks((row) => batch.isTaught(row, [gradValues]))) {
        yield network.valueGradient(weights, chunk, batch.spread("gradValues", gradValues, chunk));
      }
    };
    const { weights } = this.#learned;
    const { gradients } = gradientSum(parts(this.#network, weights), weights);
    return this.#learned.update(gradients, stepsSchedule);
  }

  async state(): Promise<PolicyState> {
    return this.#learned.state({});
  }

  async setState(state: PolicyState): Promise<void> {
    this.#learned.setState(state, []);
  }
}

export const TinyCriticActor: ActorClass<typeof TinyCritic> = remote(TinyCritic);
