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

/** One message of a conversation. */
export interface ChatMessage {
  /** The speaker: system, user, assistant or tool. */
  readonly role: string;
  /** A text, or parts of which some are images or the like: they reach the policy as they are. */
  readonly content: string | readonly ContentPart[];
}

/**
 * A part of a message as in the OpenAI API and Hugging Face's data sets: { type: "text", text }, {
 * type: "image", ... }.
 */
export interface ContentPart {
  /** The kind of the part, as `text` or `image`. */
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

/** Prompts, with the settings of sampling. */
export interface GenerateRequest {
  /** Conversations to be answered. */
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
  /** Phase and step that the call is for. */
  readonly account?: Account;
}

/** One finished answer. */
export interface Rollout {
  /** Number of the prompt in the request. */
  readonly prompt: number;
  /** Number of the sample among the prompt's n, from 0. */
  readonly sample: number;
  /** Ids of the prompt, without padding. */
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
  /** Why the response ended: by itself (stop), or at `maxResponseLength` (length). */
  readonly finishReason: "stop" | "length";
  /** How many updates the weights had seen. */
  readonly version: number;
}

/** Prompts of P tokens with responses of R tokens. */
export interface TokenRows {
  /** Token ids, [rows, P], padded on the left. */
  readonly prompts: Tensor;
  /** Token ids, [rows, R], padded on the right. */
  readonly responses: Tensor;
  /** 1 for a token, 0 for padding, [rows, P + R]. */
  readonly attentionMask: Tensor;
  /** Divisor of the logits before the softmax. Default 1. */
  readonly temperature?: number;
  /** Phase and step that the call is for. */
  readonly account?: Account;
}

/** All [rows, R]; what stands at padding does not matter. */
export interface LogProbs {
  /** Log-probability of each token of the response. */
  readonly logProbs: Tensor<"float32">;
  /** Entropy of the distribution of each token of the response, in nats. */
  readonly entropys: Tensor<"float32">;
  /**
   * Sums of squared probabilities over the vocabulary, for the optimal token baselines, if the
   * policy reports them.
   */
  readonly sumPiSquared?: Tensor<"float32">;
}

/** Rows with gradients, for one step of the optimizer. */
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

/** Figures of one update. */
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
  /** Weights by name. */
  readonly weights: Readonly<Record<string, Float32Array>>;
  /**
   * Moments of the optimizer and all else that it needs to continue exactly; empty where there is
   * none.
   */
  readonly optimizer: Readonly<Record<string, Float32Array>>;
}

/** Description of a policy. */
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

/** The contract of a policy, an actor with these methods. */
export interface Policy {
  /** Returns the name of the model, and which of the methods work. */
  describe(): Awaitable<PolicyInfo>;
  /** Tokens of each prompt as the policy would read it. */
  promptLengths(prompts: readonly (readonly ChatMessage[])[]): Awaitable<readonly number[]>;
  /**
   * Yields rollouts as they are finished, those of one moment together, in any order; each of
   * prompts x n once.
   */
  generate(request: GenerateRequest): AsyncGenerator<readonly Rollout[], void, undefined>;
  /** Returns log-probabilities and entropies of all tokens of the responses. */
  logProbs(rows: TokenRows): Awaitable<LogProbs>;
  /** One step of the optimiser over all of the rows. */
  update(update: PolicyUpdate): Awaitable<UpdateMetrics>;
  /** Returns all that a checkpoint needs to continue exactly. */
  state(): Awaitable<PolicyState>;
  /**
   * Rejects a state of another shape, and one that would mean something else here: the trainer
   * compares nothing. A policy that depends on more than the sizes of its weights (a tokenizer, the
   * number of heads) keeps these in its state and rejects others with TrainerInputError.
   */
  setState(state: PolicyState): Awaitable<void>;
}

/** Rows with gradients of the values, for one step of the optimizer. */
export interface CriticUpdate extends TokenRows {
  /** d loss / d value, [rows, R]. */
  readonly gradValues: Tensor;
  /** Whether the learning rate goes on by one step. Default true. */
  readonly stepsSchedule?: boolean;
  /** False where no row has a valid score: the weights stay. Default true. */
  readonly learns?: boolean;
}

/** A critic, which gae needs: it values each token of the response before the token is written. */
export interface Critic {
  /** [rows, R]. */
  values(rows: TokenRows): Awaitable<Tensor<"float32">>;
  /** Performs one step of the optimizer over all of the rows. */
  update(update: CriticUpdate): Awaitable<UpdateMetrics>;
  /** Returns all that a checkpoint needs to continue exactly. */
  state(): Awaitable<PolicyState>;
  /** Restores a state; rejects others as `Policy.setState`. */
  setState(state: PolicyState): Awaitable<void>;
}

/** Handle of an actor that is a policy. */
export type PolicyHandle = ActorHandle<Policy>;
/** Handle of an actor that is a critic. */
export type CriticHandle = ActorHandle<Critic>;
