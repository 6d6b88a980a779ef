/**
 * verl's `reward.sandbox_fusion`: the service in which programs are tested, and its concurrency. In
 * verl that is a semaphore that all workers share; here it is a limit of the loop, which holds for
 * every loop that names the same service, beside any other limit: a sample asks for one test at a
 * time.
 */

import { RewardLoopOptionError } from "../errors.ts";
import { sandboxFusionOptions, type SandboxFusionTable } from "../options/defaults/functions.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf } from "../options/table.ts";
import type { RewardLimits } from "./policy-settings.ts";

/** verl `reward.sandbox_fusion`, with the URL of the service. */
export type SandboxFusionUse = OptionsOf<SandboxFusionTable> & { readonly url: string };

/** The options that the service concerns. */
interface SandboxAndLimits {
  readonly sandboxFusion?: OptionsOf<SandboxFusionTable> | undefined;
  readonly reward?: unknown;
  readonly limits?: RewardLimits | undefined;
}

/** Adds the service's limits to the loop's. Throws RewardLoopOptionError. */
export function withSandboxLimits<Options extends SandboxAndLimits>(options: Options): Options {
  const { sandboxFusion, reward, limits } = options;
  if (sandboxFusion === undefined) return options;
  const { url, maxConcurrent } = withDefaults(sandboxFusionOptions, sandboxFusion);
  if (reward !== undefined) {
    const wanted = "left out with a `reward` of your own, which says itself where programs run";
    throw new RewardLoopOptionError("sandboxFusion", wanted, url);
  }
  return {
    ...options,
    limits: {
      ...limits,
      endpoint: limits?.endpoint ?? url,
      concurrency: atMost(maxConcurrent, limits?.concurrency),
    },
  };
}

/** Returns a limit within which both hold. "auto" looks for its own below the service's. */
function atMost(
  most: number,
  given: RewardLimits["concurrency"],
): NonNullable<RewardLimits["concurrency"]> {
  if (given === undefined) return most;
  if (typeof given === "number") return Math.min(given, most);
  const { min, max = most, ...others } = given === "auto" ? {} : given;
  return {
    ...others,
    ...(min === undefined ? {} : { min: Math.min(min, most) }),
    max: Math.min(max, most),
  };
}
