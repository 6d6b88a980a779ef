/**
 * The exit codes of all commands, and the errors that mean wrong input.
 */

import { CommanderError } from "commander";
import { codeOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "./cli-error.ts";

export const exitCodes = {
  done: 0,
  /** The run failed, or there was no driver. */
  failed: 1,
  /** A flag, a configuration, a module or data cannot be used. */
  wrongInput: 2,
  /**
   * All samples were processed, and none has a score, or too many lack one (`--fail-above`). The
   * results are written.
   */
  withoutScores: 3,
  /** Ended by SIGHUP, when its terminal is closed: 128 and the signal's number. */
  hungUp: 129,
  /** Ended by Ctrl-C: 128 and the signal's number, as shells count. */
  interrupted: 130,
  /** Ended by SIGTERM: 128 and the signal's number. */
  terminated: 143,
} as const;

/** The text for the help of a command. */
export const exitHelp: string = `Exit codes: ${exitCodes.done} done, ${exitCodes.failed} it failed, ${exitCodes.wrongInput} wrong input, ${exitCodes.withoutScores} too few samples have a score, ${exitCodes.interrupted} stopped by Ctrl-C, ${exitCodes.terminated} by SIGTERM, ${exitCodes.hungUp} by the end of its terminal.`;

/** Codes of errors that mean wrong input to any command. */
const inputCodes: ReadonlySet<unknown> = new Set([
  "CONFIG",
  "TRAINER_CONFIG",
  "TRAINER_INPUT",
  "FOLDER_BUSY",
  "REWARD_LOG_BUSY",
  "REWARD_CONFIG",
  "REWARD_LOOP_OPTION",
  "INVALID_OPTION",
  "DATASET",
  "HUB_FILE",
  "CHECKPOINT_BAD_PATH",
  "CHECKPOINT_NOT_FOUND",
  "CHECKPOINT_DAMAGED",
  "TRACKING_OPEN",
  "INVALID_REWARD_SPEC",
  "REWARD_MODULE_NOT_FOUND",
  "REWARD_MODULE_IMPORT",
  "REWARD_EXPORT_NOT_FOUND",
  "REWARD_EXPORT_TYPE",
  "UNKNOWN_REWARD_MANAGER",
  "INVALID_REWARD_MANAGER",
  "INVALID_MANAGER_OPTION",
  "INVALID_SCORER_OPTION",
  "MISSING_TOKENIZER",
  "STALE_REWARDS",
]);

export function exitCodeOf(error: unknown): number {
  // Commander has already reported the problem; a request for help is no problem.
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? exitCodes.done : exitCodes.wrongInput;
  }
  if (error instanceof CliError) return error.exitCode;
  return inputCodes.has(codeOf(error)) ? exitCodes.wrongInput : exitCodes.failed;
}
