/**
 * Heap limits of an executor, checked when the loop is made: core refuses the wrong ones, too, but
 * only when an executor is to start with them.
 */

import type { ResourceLimits } from "@rayling/core";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { number, option } from "../options/table.ts";

const size = option(number({ above: 0 }), undefined);

/** The least ones are core's (packages/core/src/shared/runtime-env.ts says how they were found). */
const heapLimits = {
  maxYoungGenerationSizeMb: size,
  maxOldGenerationSizeMb: option(number({ least: 16 }), undefined),
  codeRangeSizeMb: size,
  stackSizeMb: option(number({ least: 0.5 }), undefined),
} satisfies TableOf<ResourceLimits>;

/** Returns them without those that are undefined. Throws RewardLoopOptionError. */
export function heapLimitsOf(given: ResourceLimits | undefined): ResourceLimits | undefined {
  if (given === undefined) return undefined;
  checkOptions(heapLimits, given, "resourceLimits");
  return Object.fromEntries(Object.entries(given).filter(([, limit]) => limit !== undefined));
}
