/**
 * verl's dapo manager: the bare pipeline, minus a penalty for responses near the limit of their
 * length (verl/experimental/reward_loop/reward_manager/dapo.py). The penalty grows from 0, `len`
 * tokens before `maxRespLen`, to `penaltyFactor` there, and further beyond. `score` and `acc` in
 * the extra info stay unchanged.
 */

import { InvalidManagerOptionError, InvalidSampleError } from "../errors.ts";
import { defaultComputeScore } from "../scorers/default-compute-score.ts";
import type { ComputeScore } from "../scoring/compute-score.ts";
import type { RewardResult } from "../scoring/reward-result.ts";
import type { RewardSample } from "../scoring/sample.ts";
import { scoreSample } from "../scoring/score-sample.ts";
import type { ScoreSampleOptions } from "../scoring/score-sample.ts";
import type { OptionNames } from "../option-names.ts";
import { describeValue } from "../value-description.ts";
import { checkArguments, checkManagerOptions, scoreOptionsOf } from "./reward-manager.ts";
import type { RewardManager, RewardManagerArguments } from "./reward-manager.ts";
import { isRecord } from "../values/records.ts";

/** The manager's `options` (verl `reward.reward_kwargs`). */
export interface DapoOptions {
  /** verl `max_resp_len`: the most tokens of a response. Required with the buffer. */
  readonly maxRespLen?: number;
  /** verl `overlong_buffer_cfg`. Default: no penalty. */
  readonly overlongBuffer?: OverlongBuffer;
}

/** verl `overlong_buffer_cfg`: the penalty for responses near the limit of their length. */
export interface OverlongBuffer {
  /** Whether the penalty applies. Default true. */
  readonly enable?: boolean;
  /** The number of tokens before the limit in which the penalty grows. */
  readonly len: number;
  /** The penalty at the limit. Default 1. */
  readonly penaltyFactor?: number;
  /**
   * Whether to add `overlong_reward` (the penalty, 0 or less) and `overlong` to the extra info.
   * Default false.
   */
  readonly log?: boolean;
}

const optionNames: OptionNames<DapoOptions> = { maxRespLen: true, overlongBuffer: true };

const bufferNames: OptionNames<OverlongBuffer> = {
  enable: true,
  len: true,
  penaltyFactor: true,
  log: true,
};

interface Buffer {
  readonly expected: number;
  readonly len: number;
  readonly penaltyFactor: number;
  readonly log: boolean;
}

/** verl's dapo manager: the score, minus a penalty for responses near the limit of their length. */
export class DapoRewardManager implements RewardManager {
  readonly #computeScore: ComputeScore;
  readonly #options: ScoreSampleOptions;
  readonly #buffer: Buffer | undefined;

  /** Throws InvalidManagerOptionError. */
  constructor(args: RewardManagerArguments = {}) {
    this.#options = scoreOptionsOf(args);
    // A subclass may have others.
    if (new.target === DapoRewardManager) {
      checkArguments("dapo", args);
      checkManagerOptions("dapo", args.options ?? {}, optionNames);
    }
    this.#computeScore = args.computeScore ?? defaultComputeScore;
    this.#buffer = readBuffer(args.options ?? {});
  }

  /**
   * Rejects as scoreSample does, and with InvalidSampleError for a text of unknown token count when
   * the penalty needs it.
   */
  async runSingle(sample: RewardSample): Promise<RewardResult> {
    const buffer = this.#buffer;
    const length = buffer === undefined ? 0 : lengthOf(sample);
    const result = await scoreSample(sample, this.#computeScore, this.#options);
    if (buffer === undefined) return result;
    const { rewardScore, rewardExtraInfo } = result;
    const penalty = penaltyOf(length, buffer);
    return {
      rewardScore: rewardScore + penalty,
      rewardExtraInfo: buffer.log
        ? { ...rewardExtraInfo, overlong_reward: penalty, overlong: penalty < 0 }
        : rewardExtraInfo,
    };
  }
}

/** Returns 0 or less. */
function penaltyOf(length: number, { expected, len, penaltyFactor }: Buffer): number {
  // The addition turns -0 into 0.
  return Math.min((-(length - expected) / len) * penaltyFactor, 0) + 0;
}

function lengthOf({ response, responseLength }: RewardSample): number {
  if (typeof response !== "string") return response.length;
  if (responseLength !== undefined) return responseLength;
  throw new InvalidSampleError(
    "responseLength",
    "given for the overlong buffer, where the response is a text and not token ids",
    describeValue(responseLength),
  );
}

function readBuffer(options: Readonly<Record<string, unknown>>): Buffer | undefined {
  const { maxRespLen, overlongBuffer } = options;
  if (overlongBuffer === undefined || overlongBuffer === null) return undefined;
  if (!isRecord(overlongBuffer)) refuse("overlongBuffer", "an object", overlongBuffer);
  checkManagerOptions("dapo", overlongBuffer, bufferNames, "overlongBuffer");
  const { enable = true, len, penaltyFactor = 1, log = false } = overlongBuffer;
  if (typeof enable !== "boolean") refuse("overlongBuffer.enable", "true or false", enable);
  if (!enable) return undefined;
  const isCount = (value: unknown): value is number =>
    typeof value === "number" && Number.isInteger(value) && value > 0;
  if (!isCount(len)) refuse("overlongBuffer.len", "a whole number above 0", len);
  if (!isCount(maxRespLen))
    refuse("maxRespLen", "a whole number above 0, with the overlong buffer", maxRespLen);
  if (maxRespLen < len) refuse("maxRespLen", `at least overlongBuffer.len, ${len}`, maxRespLen);
  if (typeof penaltyFactor !== "number" || !Number.isFinite(penaltyFactor))
    refuse("overlongBuffer.penaltyFactor", "a finite number", penaltyFactor);
  if (typeof log !== "boolean") refuse("overlongBuffer.log", "true or false", log);
  return { expected: maxRespLen - len, len, penaltyFactor, log };
}

function refuse(option: string, expected: string, received: unknown): never {
  throw new InvalidManagerOptionError("dapo", option, expected, describeValue(received));
}
