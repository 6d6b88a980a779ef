/**
 * A policy that takes the time of a real one and computes nothing: for replays of recorded runs,
 * and to measure a schedule before there is a model.
 *
 * Its one thread stands for the GPU: phases run one after the other. Its answers are functions of
 * the request: rollouts of a few tokens, log-probabilities of 0.
 */

import * as ray from "@rayling/core";
import { zeros } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { isRecord } from "@rayling/reward-manager-registry/values";
import { messageText } from "./message-text.ts";
import { TrainerInputError } from "../errors.ts";
import type {
  Account,
  ChatMessage,
  CriticUpdate,
  GenerateRequest,
  LogProbs,
  PolicyInfo,
  PolicyState,
  PolicyUpdate,
  Rollout,
  TokenRows,
  UpdateMetrics,
} from "./policy.ts";

/** Times that a `TimedPolicy` takes. */
export interface TimedPolicySettings {
  /**
   * Seconds of a step in each phase by verl's timers (gen, testing, old_log_prob, ref, values,
   * update_actor, update_critic, save_checkpoint), or a list with those of each step, of which the
   * last goes on for ever. A phase that is not there takes no time.
   */
  readonly seconds: Readonly<Record<string, number | readonly number[]>>;
  /** All seconds are divided by it. Default 1. */
  readonly scale?: number;
  /**
   * Rows of a whole step: a call with fewer takes its share. Default: each call takes all of the
   * seconds.
   */
  readonly rowsPerStep?: number;
  /**
   * After which part of the generation the first rollout is finished; the others follow evenly
   * until its end. One number, or one for training (gen) and one for validation (testing). Default
   * 1: all at the end.
   */
  readonly firstFinished?: number | { readonly gen?: number; readonly testing?: number };
  /** Tokens of each response. Default 1. */
  readonly responseTokens?: number;
}

/**
 * A policy without a model, which takes the time that it is given; for measurements of schedules.
 */
export class TimedPolicy {
  readonly #settings: TimedPolicySettings;
  #version = 0;

  /** Throws TrainerInputError. */
  constructor(settings: TimedPolicySettings) {
    const { scale = 1, firstFinished = 1, responseTokens = 1, rowsPerStep = 1 } = settings;
    checkAmount("scale", scale, scale > 0);
    checkFirstFinished(firstFinished);
    for (const [name, count] of Object.entries({ responseTokens, rowsPerStep })) {
      checkAmount(name, count, Number.isSafeInteger(count) && count > 0);
    }
    if (!isRecord(settings.seconds)) {
      const problem = `seconds must be an object of phases, not ${String(settings.seconds)}`;
      throw new TrainerInputError("seconds", problem);
    }
    for (const [phase, seconds] of Object.entries(settings.seconds)) {
      for (const one of [seconds].flat()) checkAmount(`seconds.${phase}`, one, one >= 0);
    }
    this.#settings = settings;
  }

  /** Returns that the policy scores tokens and trains. */
  describe(): PolicyInfo {
    return { name: "timed", scoresTokens: true, trains: true, padTokenId: 0 };
  }

  /** Returns 1 for each prompt. */
  promptLengths(prompts: readonly (readonly ChatMessage[])[]): number[] {
    return prompts.map(() => 1);
  }

  /** Yields rollouts over the time of the phase. */
  async *generate(request: GenerateRequest): AsyncGenerator<readonly Rollout[], void, undefined> {
    const { prompts, n = 1, account = { phase: "gen", step: 1 } } = request;
    const count = prompts.length * n;
    const startMs = performance.now();
    const durationMs = this.#durationMs(account, count);
    const first = firstFinishedIn(account.phase, this.#settings);
    const finishedMs = (index: number): number =>
      startMs + durationMs * (first + (1 - first) * (count === 1 ? 1 : index / (count - 1)));
    for (let next = 0; next < count;) {
      await sleepUntil(finishedMs(next));
      const nowMs = performance.now();
      const moment: Rollout[] = [];
      while (next < count && finishedMs(next) <= nowMs) moment.push(this.#rollout(request, next++));
      yield moment;
    }
  }

  /** Takes the time of the phase, and returns zeros. */
  async logProbs(rows: TokenRows): Promise<LogProbs> {
    await this.#spend(rows, "old_log_prob");
    const { shape } = rows.responses;
    return { logProbs: zeros(shape, "float32"), entropys: zeros(shape, "float32") };
  }

  /** Takes the time of the phase, and counts the update. */
  async update(update: PolicyUpdate): Promise<UpdateMetrics> {
    await this.#spend(update, "update_actor");
    this.#version += 1;
    return { gradNorm: 0, lr: 0 };
  }

  /** Takes the time of save_checkpoint, and returns the number of updates. */
  async state(): Promise<PolicyState> {
    await sleepUntil(
      performance.now() + this.#durationMs({ phase: "save_checkpoint", step: 1 }, Infinity),
    );
    return { version: this.#version, weights: {}, optimizer: {} };
  }

  /** Sets the number of updates. */
  setState({ version }: PolicyState): void {
    this.#version = version;
  }

  #rollout({ prompts, n = 1 }: GenerateRequest, index: number): Rollout {
    const { responseTokens = 1 } = this.#settings;
    const prompt = Math.floor(index / n);
    const sample = index % n;
    const last = prompts[prompt]?.at(-1);
    const text = last === undefined ? "" : messageText(last);
    return {
      prompt,
      sample,
      promptIds: Int32Array.of(1),
      responseIds: new Int32Array(responseTokens).fill(1),
      response: `${text} #${sample}`,
      rolloutLogProbs: new Float32Array(responseTokens),
      finishReason: "stop",
      version: this.#version,
    };
  }

  async #spend(rows: TokenRows, usual: string): Promise<void> {
    const { account = { phase: usual, step: 1 } } = rows;
    const [count = 0] = rows.responses.shape;
    await sleepUntil(performance.now() + this.#durationMs(account, count));
  }

  #durationMs(account: Account, rows: number): number {
    const { seconds } = this.#settings;
    return durationMsOf(seconds[account.phase], account, rows, this.#settings);
  }
}

/** The critic beside it, in the same way. */
export class TimedCritic {
  readonly #policy: TimedPolicy;

  constructor(settings: TimedPolicySettings) {
    this.#policy = new TimedPolicy(settings);
  }

  /** Takes the time of the phase, and returns zeros, [rows, R]. */
  async values(rows: TokenRows): Promise<Tensor<"float32">> {
    const { account = { phase: "values", step: 1 } } = rows;
    return (await this.#policy.logProbs({ ...rows, account })).logProbs;
  }

  /** Takes the time of the phase, and counts the update. */
  update(update: CriticUpdate): Promise<UpdateMetrics> {
    const { account = { phase: "update_critic", step: 1 }, gradValues, ...rows } = update;
    return this.#policy.update({ ...rows, gradLogProbs: gradValues, account });
  }

  /** Takes the time of save_checkpoint, and returns the number of updates. */
  state(): Promise<PolicyState> {
    return this.#policy.state();
  }

  /** Sets the number of updates. */
  setState(state: PolicyState): void {
    this.#policy.setState(state);
  }
}

/** `TimedPolicy` as an actor: `TimedPolicyActor.remote(settings)`. */
export const TimedPolicyActor: ray.ActorClass<typeof TimedPolicy> = ray.remote(TimedPolicy, {
  maxConcurrency: 1,
});
/** `TimedCritic` as an actor: `TimedCriticActor.remote(settings)`. */
export const TimedCriticActor: ray.ActorClass<typeof TimedCritic> = ray.remote(TimedCritic, {
  maxConcurrency: 1,
});

function durationMsOf(
  seconds: number | readonly number[] | undefined,
  { step, phase }: Account,
  rows: number,
  { scale = 1, rowsPerStep }: TimedPolicySettings,
): number {
  if (seconds === undefined) return 0;
  const ofStep =
    typeof seconds === "number" ? seconds : (seconds[Math.max(0, step - 1)] ?? seconds.at(-1) ?? 0);
  // A validation is one call, however many rows it has, and so is a checkpoint.
  const isWhole = rowsPerStep === undefined || phase === "testing" || phase === "save_checkpoint";
  const share = isWhole ? 1 : rows / rowsPerStep;
  return (ofStep * 1000 * share) / scale;
}

function firstFinishedIn(
  phase: string,
  { firstFinished = 1 }: Pick<TimedPolicySettings, "firstFinished">,
): number {
  if (typeof firstFinished === "number") return firstFinished;
  return (phase === "testing" ? firstFinished.testing : firstFinished.gen) ?? 1;
}

/**
 * To a fraction of a millisecond: timers are only good to one, late by up to another, and replays
 * count hundreds of phases.
 */
async function sleepUntil(deadlineMs: number): Promise<void> {
  const leftMs = deadlineMs - performance.now();
  if (leftMs > timerSlackMs) {
    await new Promise((resolve) => setTimeout(resolve, leftMs - timerSlackMs));
  }
  const restMs = deadlineMs - performance.now();
  if (restMs > 0) Atomics.wait(neverNotified, 0, 0, restMs);
}

const timerSlackMs = 2;
const neverNotified = new Int32Array(new SharedArrayBuffer(4));

/** @param given comes from a configuration, and so may be anything */
function checkFirstFinished(given: unknown): void {
  const isByPhase = typeof given === "object" && given !== null;
  const parts: [string, unknown][] = isByPhase ? Object.entries(given) : [["", given]];
  for (const [phase, part] of parts) {
    const setting = isByPhase ? `firstFinished.${phase}` : "firstFinished";
    if (isByPhase && phase !== "gen" && phase !== "testing") {
      throw new TrainerInputError("firstFinished", `${setting} is neither gen nor testing`);
    }
    checkAmount(setting, part, typeof part === "number" && part > 0 && part <= 1);
  }
}

function checkAmount(setting: string, value: unknown, isGood: boolean): void {
  if (isGood) return;
  throw new TrainerInputError(setting, `${setting} cannot be ${String(value)}`);
}
