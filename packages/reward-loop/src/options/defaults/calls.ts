/**
 * Options of single calls of a loop. These tables only check them: their types, with the defaults,
 * stand beside the calls, because they contain the type of the samples. Where a table is used the
 * compiler compares its names with those of the type (`satisfies TableOf<ScoreOptions>`).
 */

import {
  anyText,
  byName,
  choice,
  either,
  fn,
  list,
  number,
  option,
  section,
  signal,
  text,
  timer,
  whole,
} from "../table.ts";
import type { Option } from "../table.ts";

/** Has an entry for each name of the type. */
export type TableOf<Options> = Readonly<Record<keyof Options, Option>>;

const lane = { lane: option(text, undefined) };

/** ScoreOptions. */
export const scoreOptions = { ...lane, signal: option(signal, undefined) };

/** StreamGroups. */
export const groupOptions = {
  size: option(either(whole(1), fn, choice("consecutive"), choice("input")), undefined, {
    isRequired: true,
  }),
  mostHeld: option(number({ least: 0, whole: true, infinite: true }), undefined),
  known: option(fn, undefined),
};

/** ScoreStreamOptions. */
export const streamOptions = {
  onOutcome: option(fn, undefined),
  groups: option(section(groupOptions), undefined),
  onProgress: option(fn, undefined),
  progressEveryMs: option(timer, undefined),
  total: option(whole(0), undefined),
  ...lane,
  drain: option(signal, undefined),
  signal: option(signal, undefined),
};

/** Rows of the batch that are scored already. */
const earlierOptions = {
  rows: option(number({ least: 0, whole: true, infinite: true }), undefined, { isRequired: true }),
  failures: option(byName(whole(0)), undefined, { isRequired: true }),
};

/** The options of a round. */
export const roundOptions = {
  ...lane,
  earlier: option(section(earlierOptions), undefined),
};

/** RewardRequestOptions. */
export const requestOptions = {
  uids: option(list(anyText), undefined, { isRequired: true }),
  groupSize: option(whole(1), undefined),
  ...roundOptions,
};

/** The options of AsyncRewardAgent.computeReward. */
export const rewardOptions = { groupSize: option(whole(1), undefined), ...lane };
