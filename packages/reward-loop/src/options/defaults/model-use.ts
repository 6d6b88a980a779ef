/**
 * Options of a reward model and of its servers, as tables that check them: their types, with the
 * defaults, are those of `reward-model`. What needs more than its form is checked by the rooms of
 * reward-model/, and so are secrets, which no error may show.
 */

import {
  anyText,
  byName,
  flag,
  list,
  number,
  option,
  own,
  section,
  text,
  whole,
} from "../table.ts";
import type { TableOf } from "./calls.ts";
import type { LaunchOptions, RewardModelOptions, RewardModelUse } from "./reward-model.ts";

const unchecked = option(own<unknown>(), undefined);
const duration = option(number({ above: 0, infinite: true }), undefined);

export const launchOptions = {
  command: option(text, undefined, { isRequired: true }),
  args: option(list(anyText), undefined, { isRequired: true }),
  replicas: option(whole(1), undefined),
  env: option(byName(anyText), undefined),
  gpusPerReplica: option(whole(0), undefined),
  firstGpu: option(whole(0), undefined),
  startTimeoutMs: duration,
} satisfies TableOf<LaunchOptions>;

export const rewardModelOptions = {
  engine: unchecked,
  servers: option(list(text), undefined),
  launch: option(section(launchOptions), undefined),
  apiKey: unchecked,
  router: unchecked,
  sleeps: option(flag, undefined),
  sleepTimeoutMs: duration,
} satisfies TableOf<RewardModelOptions>;

export const rewardModelUseOptions = {
  ...rewardModelOptions,
  model: unchecked,
  tokenizer: option(text, undefined),
  policyTokenizer: option(text, undefined),
  maxRetries: option(whole(1), undefined),
  timeoutMs: duration,
} satisfies TableOf<RewardModelUse>;
