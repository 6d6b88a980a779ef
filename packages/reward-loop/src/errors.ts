/**
 * Errors of this package: what fails the whole call. One sample that fails is no error but an outcome (outcome.ts).
 * One class per thing that a caller would handle differently, told apart by `code`; fields are plain data and survive a trip between threads.
 */

import type { DeathCause } from "@rayling/core";

/** An option is missing, of the wrong type or out of range. */
export class RewardLoopOptionError extends TypeError {
  override readonly name = "RewardLoopOptionError";
  readonly code = "REWARD_LOOP_OPTION";
  readonly option: string;

  constructor(option: string, expected: string, value: unknown) {
    super(`Reward loop option ${option} must be ${expected}; it is ${String(value)}.`);
    this.option = option;
  }
}

/** A batch lacks a column that scoring needs, or holds something else there. */
export class InvalidBatchError extends Error {
  override readonly name = "InvalidBatchError";
  readonly code = "INVALID_BATCH";
  readonly column: string;

  constructor(column: string, problem: string) {
    super(`The batch cannot be scored: "${column}" ${problem}.`);
    this.column = column;
  }
}

/** No executor comes up: the user's module ends or blocks every thread that loads it. */
export class ExecutorStartError extends Error {
  override readonly name = "ExecutorStartError";
  readonly code = "EXECUTOR_START";
  readonly attempts: number;
  readonly deathKind: DeathCause["kind"] | "start-timeout";

  constructor(
    attempts: number,
    death: { readonly kind: DeathCause["kind"] | "start-timeout"; readonly message: string },
  ) {
    super(
      `Score executors do not stay alive: ${attempts} ended in a row without one result, the last because ${death.message}. ` +
        `Look at what the reward module does while it loads.`,
    );
    this.attempts = attempts;
    this.deathKind = death.kind;
  }
}

/** A reward loop worker died again and again, and nothing was scored in between. */
export class RewardLoopWorkerLostError extends Error {
  override readonly name = "RewardLoopWorkerLostError";
  readonly code = "REWARD_LOOP_WORKER_LOST";
  readonly workerName: string;
  readonly deaths: number;

  constructor(workerName: string, deaths: number, reason: string) {
    super(`${workerName} died ${deaths} times in a row without one result, last: ${reason}.`);
    this.workerName = workerName;
    this.deaths = deaths;
  }
}

/** The manager was closed before or while this ran. */
export class RewardLoopClosedError extends Error {
  override readonly name = "RewardLoopClosedError";
  readonly code = "REWARD_LOOP_CLOSED";

  constructor() {
    super("The reward loop is closed.");
  }
}
