/**
 * Scores the samples of an input with an open loop, into a file: those without a score in it, with
 * their groups, until the input ends or the run is stopped.
 */

import { givenOutcomeOf, outcomeOf } from "@rayling/reward-loop";
import type { RewardLoopManager, SampleOutcome, StreamGroups } from "@rayling/reward-loop";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { groupSizesOf } from "../inputs/sample-groups.ts";
import type { Solutions, SolutionSample } from "../inputs/solutions.ts";
import { grouped } from "../output/numbers.ts";
import type { RunView } from "../output/progress-view.ts";
import type { RewardsFile } from "../rewards/rewards-file.ts";
import type { StopSignal } from "../stop-signal.ts";
import { RunSummary } from "./run-summary.ts";
import { STDOUT } from "./score-options.ts";
import type { ScoreOptions } from "./score-options.ts";

export interface Run {
  readonly summary: RunSummary;
  readonly wallMs: number;
  readonly baselineSamples: readonly SolutionSample[];
}

/** Who stops a run, who shows it, and from which score on a sample counts as right. */
export interface ScoreAllOptions {
  /** Default 0.5. */
  readonly scoreThreshold: number | undefined;
  readonly stop: Pick<StopSignal, "signal" | "after">;
  readonly view: RunView;
}

const DRAIN_MS = 30_000;

/** A sample that is under way at a stop has one call's time limit, or 30 s, to finish. */
export function drainMsOf({ timeoutMs }: Pick<ScoreOptions, "timeoutMs">): number {
  return timeoutMs ?? DRAIN_MS;
}

/**
 * Scores all samples that the file has no score of. Rejects with CliError, which says how many
 * rewards the file has then.
 */
export async function scoreAll(
  loop: RewardLoopManager,
  { total, read }: Solutions,
  file: RewardsFile,
  { stop, view, scoreThreshold, ...options }: ScoreOptions & ScoreAllOptions,
): Promise<Run> {
  const summary = new RunSummary(scoreThreshold);
  const baselineSamples: SolutionSample[] = [];
  const subset = spreadOver(total, options.baseline);
  const startedAt = performance.now();
  const { signal } = stop;
  try {
    const groups = await groupsOf(loop, read, file, options);
    const rest = withoutScored(read(), file, options.onlyRecorded, (sample, outcome) => {
      // In a group it counts with the others, and comes back with them.
      if (groups !== undefined) return true;
      summary.keep({ index: sample.place.index, sample, outcome });
      return false;
    });
    const scored = loop.scoreStream(rest, {
      groups,
      total: (options.onlyRecorded ? file.known : total) - file.kept,
      drain: signal,
      signal: stop.after(drainMsOf(options)),
      onProgress: (progress) => view.show({ ...progress, meanScore: summary.meanScore }),
      progressEveryMs: view.everyMs,
      onOutcome: (one) => file.write(one),
    });
    for await (const one of scored) {
      if (file.stateOf(one.sample).kept === undefined) summary.add(one);
      else summary.keep(one);
      const { index } = one.sample.place;
      if (one.outcome.valid && subset.has(index)) baselineSamples.push(one.sample);
    }
    signal.throwIfAborted();
    if (file.records !== (options.onlyRecorded ? file.known : total)) {
      throw new CliError(1, `${options.solutions} changed while it was read`);
    }
    await file.close();
    return { summary, wallMs: performance.now() - startedAt, baselineSamples };
  } catch (error) {
    const exitCode = error instanceof CliError ? error.exitCode : 1;
    const reason = messageOf(error);
    const written = `${grouped(await file.count())} of ${grouped(total)} rewards are in ${file.path}`;
    const goOn = exitCode === 2 || options.out === STDOUT ? "" : " (--resume goes on)";
    throw new CliError(exitCode, `${reason.replace(/\.$/, "")}; ${written}${goOn}.`, {
      cause: error,
    });
  } finally {
    view.close();
    // A failed write was already reported: closing again fails with that error.
    await file.close().catch(() => undefined);
  }
}

/**
 * How the answers to one prompt are scored together, where the function takes them so or something
 * is done to them together. Throws CliError 2.
 */
async function groupsOf(
  loop: RewardLoopManager,
  read: Solutions["read"],
  file: RewardsFile,
  { solutions, onlyRecorded }: ScoreOptions,
): Promise<StreamGroups<SolutionSample> | undefined> {
  if (!loop.traits.scoresGroups && !loop.putsGroupsRight) return undefined;
  const all = withoutScored(read(), file, onlyRecorded, () => true);
  const size = await groupSizesOf(solutions, all);
  const known = (sample: SolutionSample): SampleOutcome | undefined => {
    const { kept } = file.stateOf(sample);
    return kept && givenOutcomeOf(kept);
  };
  return { size, known };
}

/**
 * Yields the samples without a score; `onScored` says of each other one whether it is yielded, too.
 *
 * @param onlyRecorded whether samples without a line in the file are skipped
 */
async function* withoutScored(
  samples: AsyncIterable<SolutionSample> | Iterable<SolutionSample>,
  file: RewardsFile,
  onlyRecorded: boolean,
  onScored: (sample: SolutionSample, outcome: SampleOutcome) => boolean,
): AsyncGenerator<SolutionSample> {
  for await (const sample of samples) {
    const { isKnown, kept } = file.stateOf(sample);
    const isAsked = kept === undefined && (isKnown || !onlyRecorded);
    if (isAsked || (kept !== undefined && onScored(sample, outcomeOf(kept)))) yield sample;
  }
}

/**
 * Returns multiples of the golden ratio: evenly over the file, and never in step with the number of
 * solutions per question.
 */
function spreadOver(total: number, count: number): ReadonlySet<number> {
  if (count >= total) return new Set(Array(total).keys());
  const golden = (Math.sqrt(5) - 1) / 2;
  return new Set(Array.from({ length: count }, (_, i) => Math.floor(((i * golden) % 1) * total)));
}
