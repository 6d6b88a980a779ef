/**
 * The contracts of a policy and of a critic. Both are actors: a class with these methods, made
 * remote where it is defined with `maxConcurrency: 1`, and passed to the trainer as a handle. Such
 * an actor runs the calls of one caller one after the other, so a call sees the weights that the
 * calls before it left.
 *
 * Rows travel as tensors by verl's names: prompts [rows, P] padded on the left, responses [rows, R]
 * padded on the right, attentionMask [rows, P + R].
 */

import type { ActorHandle } from "@rayling/core";
import type { Tensor } from "@rayling/data-proto";

export interface ChatMessage {
  readonly role: string;
  /** A text, or parts of which some are images or the like: they reach the policy as they are. */
  readonly content: string | readonly ContentPart[];
}

/**
 * A part of a message as in the OpenAI API and Hugging Face's data sets: { type: "text", text }, {
 * type: "image", ... }.
 */
export interface ContentPart {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** Phase and step of a call, for policies that account for their time or log it. */
export interface Account {
  /**
   * verl's name of its timer: gen, testing, old_log_prob, ref, values, update_actor, update_critic.
   */
  readonly phase: string;
  /** From 1; 0 is before the training. */
  readonly step: number;
}

export interface GenerateRequest {
  readonly prompts: readonly (readonly ChatMessage[])[];
  /** Samples of each prompt. Default 1. */
  readonly n?: number;
  /** In tokens; what is longer is cut there. */
  readonly maxResponseLength: number;
  /** False: always the likeliest token. Default true. */
  readonly doSample?: boolean;
  /** Temperature of sampling. Default 1. Log-probabilities are those after it. */
  readonly temperature?: number;
  /** Default 1: all. */
  readonly topP?: number;
  /** Default -1: all. */
  readonly topK?: number;
  /** Equal seeds, prompts and weights give equal rollouts, where the policy can promise it. */
  readonly seed?: number;
  readonly account?: Account;
}

/** One finished answer. */
export interface Rollout {
  /** Number of the prompt in the request. */
  readonly prompt: number;
  /** Number of the sample among the prompt's n, from 0. */
  readonly sample: number;
  readonly promptIds: Int32Array;
  /** Ids of the response, including the end of sequence if it was sampled. */
  readonly responseIds: Int32Array;
  /** Without special tokens. */
  readonly response: string;
  /**
   * Log-probability of each of `responseIds` when it was sampled. Undefined where the policy does
   * not report them.
   */
  readonly rolloutLogProbs?: Float32Array;
  /** Score from an agent loop or a tool (verl `reward_score`): the reward loop is not asked. */
  readonly rewardScore?: number;
  readonly finishReason: "stop" | "length";
  /** How many updates the weights had seen. */
  readonly version: number;
}

export interface TokenRows {
  readonly prompts: Tensor;
  readonly responses: Tensor;
  readonly attentionMask: Tensor;
  /** Divisor of the logits before the softmax. Default 1. */
  readonly temperature?: number;
  readonly account?: Account;
}

/** All [rows, R]; what stands at padding does not matter. */
export interface LogProbs {
  readonly logProbs: Tensor<"float32">;
  readonly entropys: Tensor<"float32">;
  /**
   * Sums of squared probabilities over the vocabulary, for the optimal token baselines, if the
   * policy reports them.
   */
  readonly sumPiSquared?: Tensor<"float32">;
}

export interface PolicyUpdate extends TokenRows {
  /** d loss / d log-probability, [rows, R]. */
  readonly gradLogProbs: Tensor;
  /** d loss / d entropy, [rows, R]. */
  readonly gradEntropys?: Tensor;
  /**
   * Whether the learning rate goes on by one step: true for the last update of a training step.
   * Default true.
   */
  readonly stepsSchedule?: boolean;
  /**
   * False where no row has a valid score: weights and moments stay, and only the learning rate
   * advances. Default true.
   */
  readonly learns?: boolean;
}

export interface UpdateMetrics {
  /** Norm of the gradient before it was clipped. */
  readonly gradNorm: number;
  /** The learning rate that this update had. */
  readonly lr: number;
}

/** Everything that training changed, to be kept and put back. */
export interface PolicyState {
  /** Updates so far. */
  readonly version: number;
  readonly weights: Readonly<Record<string, Float32Array>>;
  /**
   * Moments of the optimizer and all else that it needs to continue exactly; empty where there is
   * none.
   */
  readonly optimizer: Readonly<Record<string, Float32Array>>;
}

export interface PolicyInfo {
  /** For people: which model it is. */
  readonly name: string;
  /** Whether `logProbs` works. Without it the log-probabilities of the rollout are taken. */
  readonly scoresTokens: boolean;
  /** Whether `update` works. Without it the trainer evaluates only. */
  readonly trains: boolean;
  /** The token that fills rows up. */
  readonly padTokenId: number;
}

type Awaitable<Value> = Value | Promise<Value>;

export interface Policy {
  describe(): Awaitable<PolicyInfo>;
  /** Tokens of each prompt as the policy would read it. */
  promptLengths(prompts: readonly (readonly ChatMessage[])[]): Awaitable<readonly number[]>;
  /**
   * Yields rollouts as they are finished, those of one moment together, in any order; each of
   * prompts x n once.
   */
  generate(request: GenerateRequest): AsyncGenerator<readonly Rollout[], void, undefined>;
  logProbs(rows: TokenRows): Awaitable<LogProbs>;
  /** One step of the optimiser over all of the rows. */
  update(update: PolicyUpdate): Awaitable<UpdateMetrics>;
  state(): Awaitable<PolicyState>;
  /** Rejects a state of another shape. */
  setState(state: PolicyState): Awaitable<void>;
}

export interface CriticUpdate extends TokenRows {
  /** d loss / d value, [rows, R]. */
  readonly gradValues: Tensor;
  readonly stepsSchedule?: boolean;
  readonly learns?: boolean;
}

/** A critic, which gae needs: it values each token of the response before the token is written. */
export interface Critic {
  /** [rows, R]. */
  values(rows: TokenRows): Awaitable<Tensor<"float32">>;
  update(update: CriticUpdate): Awaitable<UpdateMetrics>;
  state(): Awaitable<PolicyState>;
  setState(state: PolicyState): Awaitable<void>;
}

export type PolicyHandle = ActorHandle<Policy>;
export type CriticHandle = ActorHandle<Critic>;
