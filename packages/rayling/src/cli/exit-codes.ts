/** How commands end: one table for all of them, and which errors say that the input was wrong. */

import { CommanderError } from "commander";
import { CliError } from "./cli-error.ts";

export const exitCodes = {
  done: 0,
  /** The run failed, or there was nothing to speak to. */
  failed: 1,
  /** A flag, a configuration, a module or data that cannot be used. */
  wrongInput: 2,
  /**
   * All samples were looked at, and none of them has a score, or more lack one than may
   * (`--fail-above`). What there is is written.
   */
  withoutScores: 3,
  /** By Ctrl-C: 128 and the signal's number, as shells count. */
  interrupted: 130,
  /** By SIGTERM, likewise. */
  terminated: 143,
} as const;

/** For the help of a command. */
export const exitHelp: string = `Exit codes: ${exitCodes.done} done, ${exitCodes.failed} it failed, ${exitCodes.wrongInput} wrong input, ${exitCodes.withoutScores} too few samples have a score, ${exitCodes.interrupted} stopped by Ctrl-C, ${exitCodes.terminated} by SIGTERM.`;

/** Codes of errors that say what is wrong with what was given, whichever command it was given to. */
const inputCodes: ReadonlySet<unknown> = new Set([
  "CONFIG",
  "TRAINER_CONFIG",
  "TRAINER_INPUT",
  "REWARD_CONFIG",
  "REWARD_LOOP_OPTION",
  "INVALID_OPTION",
  "DATASET",
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
  // Commander has said what was wrong by then; asking for help is not wrong.
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? exitCodes.done : exitCodes.wrongInput;
  }
  if (error instanceof CliError) return error.exitCode;
  const { code } = Object(error) as { readonly code?: unknown };
  return inputCodes.has(code) ? exitCodes.wrongInput : exitCodes.failed;
}
