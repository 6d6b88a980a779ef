/**
 * Errors of this package: failures of a whole call. A failed sample is no error but an outcome
 * (outcome.ts). One class for each failure that a caller would handle differently, identified by
 * `code`; fields are plain data and can be sent between threads.
 */

import type { DeathCause } from "@rayling/core";
import { messageOf } from "@rayling/reward-manager-registry/values";
import type { ScoreFailure } from "./outcome.ts";

/** An option is missing, of the wrong type or out of range. */
export class RewardLoopOptionError extends TypeError {
  override readonly name = "RewardLoopOptionError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_LOOP_OPTION";
  /** The name of the option. */
  readonly option: string;
  /** The values that it may have. */
  readonly expected: string;
  /** The value as a text. */
  readonly value: string;

  constructor(option: string, expected: string, value: unknown) {
    super(`Reward loop option ${option} must be ${expected}; it is ${String(value)}.`);
    this.option = option;
    this.expected = expected;
    this.value = String(value);
  }
}

/** A batch lacks a column that scoring needs, or holds something else there. */
export class InvalidBatchError extends Error {
  override readonly name = "InvalidBatchError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "INVALID_BATCH";
  /** The name of the column. */
  readonly column: string;

  constructor(column: string, problem: string) {
    super(`The batch cannot be scored: "${column}" ${problem}.`);
    this.column = column;
  }
}

/**
 * No executor comes up: the user's module ends or blocks every thread that loads it, or the machine
 * lacks what a new one takes (file descriptors, room for temporary files).
 */
export class ExecutorStartError extends Error {
  override readonly name = "ExecutorStartError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "EXECUTOR_START";
  /** How many starts in a row failed. */
  readonly attempts: number;
  /** How the last one failed. */
  readonly deathKind: ExecutorDeath["kind"];

  constructor(attempts: number, death: ExecutorDeath, options?: ErrorOptions) {
    super(
      death.kind === "not-created"
        ? `No score executor can be created: ${attempts} attempts failed in a row, the last because ${death.message}.`
        : `Score executors do not stay alive: ${attempts} ended in a row without one result, the last because ${death.message}. ` +
            `Look at what the reward module does while it loads.`,
      options,
    );
    this.attempts = attempts;
    this.deathKind = death.kind;
  }
}

/** How an executor ended before it gave a result; `not-created` where it never began. */
interface ExecutorDeath {
  readonly kind: DeathCause["kind"] | "start-timeout" | "not-created";
  readonly message: string;
}

/** A reward loop worker died again and again, and nothing was scored in between. */
export class RewardLoopWorkerLostError extends Error {
  override readonly name = "RewardLoopWorkerLostError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_LOOP_WORKER_LOST";
  /** The name of the worker. */
  readonly workerName: string;
  /** How often it died in a row. */
  readonly deaths: number;

  constructor(workerName: string, deaths: number, reason: string) {
    super(`${workerName} died ${deaths} times in a row without one result, last: ${reason}.`);
    this.workerName = workerName;
    this.deaths = deaths;
  }
}

/** Another reward, of this loop or of another one, uses this endpoint with other limits. */
export class RewardLimiterConflictError extends Error {
  override readonly name = "RewardLimiterConflictError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_LIMITER_CONFLICT";
  /** The name of the endpoint. */
  readonly endpoint: string;

  constructor(endpoint: string) {
    super(
      `Endpoint "${endpoint}" already has other limits, from another reward of this loop or from another loop: give all of them the same \`limits\`, or different names in \`limits.endpoint\`.`,
    );
    this.endpoint = endpoint;
  }
}

/** An AsyncRewardAgent was asked for rows that it cannot give. */
export class RewardChunkError extends RangeError {
  override readonly name = "RewardChunkError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_CHUNK";

  constructor(problem: string) {
    super(`The reward agent cannot give that chunk: ${problem}.`);
  }
}

/** A folder has no tokenizer of Hugging Face's format that can be read. */
export class TokenizerFolderError extends Error {
  override readonly name = "TokenizerFolderError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "TOKENIZER_FOLDER";
  /** The path of the folder. */
  readonly path: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(
      `There is no tokenizer in ${path}: ${problem}. It must be a folder of this machine with tokenizer.json and tokenizer_config.json.`,
      options,
    );
    this.path = path;
  }
}

/** A reward-model server that was to be started is not there. */
export class RewardModelStartError extends Error {
  override readonly name = "RewardModelStartError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_MODEL_START";
  /** host:port of the server. */
  readonly address: string;
  /** Why it is not there. */
  readonly reason: string;
  /** The last lines of its standard error. */
  readonly stderr: string;
  /** The name of the reward model, where it is one of several. */
  readonly model: string | undefined;

  constructor(address: string, reason: string, stderr: string, model?: string) {
    super(
      `The ${model === undefined ? "reward model's server" : `server of the reward model ${model}`} at ${address} did not start: ${reason}.${stderr === "" ? "" : `\n${stderr}`}`,
    );
    this.address = address;
    this.reason = reason;
    this.stderr = stderr;
    this.model = model;
  }
}

/** More samples of a batch are invalid than `onFailure.failAbove` allows. */
export class RewardFailuresError extends Error {
  override readonly name = "RewardFailuresError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_FAILURES";
  /** The number of invalid samples. */
  readonly invalid: number;
  /** The number of all samples of the batch. */
  readonly total: number;
  /** How many, by the code of their failure. */
  readonly counts: Readonly<Record<string, number>>;

  constructor(invalid: number, total: number, counts: Readonly<Record<string, number>>) {
    const reasons = Object.entries(counts).map(([code, count]) => `${count} x ${code}`);
    super(`${invalid} of ${total} samples have no score: ${reasons.join(", ")}.`);
    this.invalid = invalid;
    this.total = total;
    this.counts = counts;
  }
}

/** The file of a score cache cannot be used. */
export class RewardCacheError extends Error {
  override readonly name = "RewardCacheError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_CACHE";
  /** The path of the file. */
  readonly path: string;

  constructor(path: string, cause: unknown) {
    const reason = messageOf(cause);
    super(`The score cache ${path} cannot be used: ${reason}.`, { cause });
    this.path = path;
  }
}

/** A line of a reward log is no record of one. */
export class RewardLogError extends Error {
  override readonly name = "RewardLogError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_LOG";
  /** The path of the log. */
  readonly path: string;
  /** The line, 1-based. */
  readonly line: number;

  constructor(path: string, line: number, options?: ErrorOptions) {
    super(`${path}:${line}: the line is no record of a reward.`, options);
    this.path = path;
    this.line = line;
  }
}

/** Another writer has the reward log. */
export class RewardLogBusyError extends Error {
  override readonly name = "RewardLogBusyError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_LOG_BUSY";
  /** The path of the log. */
  readonly path: string;
  /** The process that writes the log. */
  readonly pid: number;

  constructor(path: string, pid: number) {
    const who = pid === process.pid ? "this process" : `process ${pid}`;
    super(`${path} is being written by ${who}: wait until that is done, or give another file.`);
    this.path = path;
    this.pid = pid;
  }
}

/**
 * A loop is to go on with a reward log whose scores other reward functions gave, or the same with
 * other settings.
 */
export class RewardLogStaleError extends Error {
  override readonly name = "RewardLogStaleError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_LOG_STALE";
  /** The path of the log. */
  readonly path: string;
  /** How many of its scores. */
  readonly stale: number;

  constructor(path: string, stale: number, scores: number) {
    super(
      `${stale} of the ${scores} scores in ${path} are of another version of the reward functions: resume with stale "rescore" or "keep", or give another file.`,
    );
    this.path = path;
    this.stale = stale;
  }
}

/** The user's manager did not say where the scores of a batch stand. */
export class RewardAssemblyError extends Error {
  override readonly name = "RewardAssemblyError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_ASSEMBLY";
  /** The error of the manager. */
  readonly failure: ScoreFailure;

  constructor(failure: ScoreFailure) {
    super(`assembleRmScores failed: ${failure.name}: ${failure.message}`);
    this.failure = failure;
  }
}

/**
 * A stream holds as many samples as it may, and their groups are not whole: answers to one prompt
 * stand too far apart.
 */
export class RewardGroupError extends Error {
  override readonly name = "RewardGroupError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_GROUP";
  /** Groups that are not whole. */
  readonly open: number;
  /** The most samples that may be held for such groups. */
  readonly mostHeld: number;

  constructor(open: number, mostHeld: number) {
    super(
      `${open} groups are not whole and hold more than ${mostHeld} samples: sort the input by its groups, or give more as groups.mostHeld`,
    );
    this.open = open;
    this.mostHeld = mostHeld;
  }
}

/** The manager was closed before or while this ran. */
export class RewardLoopClosedError extends Error {
  override readonly name = "RewardLoopClosedError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "REWARD_LOOP_CLOSED";

  constructor() {
    super("The reward loop is closed.");
  }
}
