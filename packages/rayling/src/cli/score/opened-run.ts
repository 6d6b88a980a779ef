/**
 * A run before its first sample: the input and the earlier results are checked before the session
 * starts, and the loop and the file are opened after it. Nothing is written before all of that.
 */

import type { Writable } from "node:stream";
import { RewardLogBusyError, WriterMark } from "@rayling/reward-loop";
import type { RewardLoopManager } from "@rayling/reward-loop";
import { refusalOf } from "../cli-error.ts";
import { askedFunctions } from "../functions/asked-functions.ts";
import type { AskedFunctions } from "../functions/asked-functions.ts";
import type { Solutions } from "../inputs/solutions.ts";
import { readPast } from "./resume/past-rewards.ts";
import { resumedPlaces } from "./resume/resumed-places.ts";
import { RewardsFile } from "../rewards/rewards-file.ts";
import type { EarlierRun } from "../rewards/rewards-file.ts";
import type { StopSignal } from "../stop-signal.ts";
import { meantBy, openLoop, refuseInput } from "./score-loop.ts";
import { STDOUT } from "./score-options.ts";
import type { ScoreOptions } from "./score-options.ts";

export interface PreparedRun {
  readonly options: ScoreOptions;
  readonly asked: AskedFunctions;
  readonly earlier: EarlierRun;
  /** Keeps other runs from writing the file, which the run reads first; undefined for stdout. */
  readonly mark: WriterMark | undefined;
}

/** Rejects with CliError 2, and then leaves no mark. */
export async function prepareRun(
  options: ScoreOptions,
  solutions: Solutions,
): Promise<PreparedRun> {
  const asked = await askedFunctions(options);
  await refuseInput(options, asked);
  const mark = options.out === STDOUT ? undefined : await markOf(options);
  try {
    const past = await readPast(options, meantBy(options, asked));
    const places = await resumedPlaces(past, solutions, options);
    return { options, asked, mark, earlier: { past, places } };
  } catch (error) {
    await mark?.remove();
    throw error;
  }
}

/**
 * Marks the file before it is read or emptied. Rejects with CliError 2 while another run writes it.
 */
async function markOf({ out }: ScoreOptions): Promise<WriterMark> {
  try {
    return await WriterMark.put(out);
  } catch (error) {
    throw refusalOf(error, [RewardLogBusyError], "--out");
  }
}

/** Opens the loop of a run, unless a stop comes first. Rejects with CliError 2. */
export function openRunLoop(
  { options, asked }: PreparedRun,
  stop: StopSignal,
): Promise<RewardLoopManager> {
  return stop.race(openLoop(options, asked));
}

/** @param stream the target in place of the file. Rejects with CliError 2. */
export function openRunFile(
  { options, earlier, mark }: PreparedRun,
  { version }: RewardLoopManager,
  stream?: Writable,
): Promise<RewardsFile> {
  return RewardsFile.open(earlier, version, options, { mark, stream });
}
