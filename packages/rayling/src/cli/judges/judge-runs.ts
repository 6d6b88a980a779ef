/**
 * Several judges of one run, by flags: each has all options of a run of its own.
 */

import { CliError } from "../cli-error.ts";
import { readOptions } from "../score/read-options.ts";
import { STDOUT } from "../score/score-options.ts";
import type { ScoreFlags, ScoreOptions } from "../score/score-options.ts";
import { logOf, namedJudges } from "./judge-files.ts";

/** One of several judges: its options, with a reward log of its own. */
export interface Judge {
  readonly name: string;
  readonly options: ScoreOptions;
}

/** Returns the judges of a run that has several. Throws CliError 2. */
export function judgesOf(input: string | undefined, flags: ScoreFlags): Judge[] {
  const { out, baseline = 0 } = flags;
  const reward = flags.reward ?? [];
  const rewards = flags.rewards ?? [];
  if (reward.length + rewards.length < 2) return [];
  const { judge, replay } = flags;
  const single = {
    "--judge": judge !== undefined,
    "--replay": replay !== undefined,
    "--baseline": baseline > 0,
    "--out -": out === STDOUT,
  };
  const [flag] = Object.entries(single).find(([, isGiven]) => isGiven) ?? [];
  if (flag !== undefined) {
    throw new CliError(2, `${flag} is for one --reward; several are judges that are compared.`);
  }
  const named = namedJudges([
    ...reward.map((path) => ({ reward: path })),
    ...rewards.map((path) => ({ rewards: path })),
  ]);
  return named.map(({ name, ...own }) => {
    const functions =
      own.rewards === undefined
        ? { reward: [own.reward ?? ""], rewards: [] }
        : { reward: [], rewards: [own.rewards], rewardKwarg: {} };
    const ofJudge = { ...flags, ...functions, baseline: 0, out: logOf(out, name) };
    return { name, options: readOptions(input, ofJudge) };
  });
}
