/**
 * verl's `reward.sandbox_fusion`: the service in which programs are tested, and its concurrency. In
 * verl that is a semaphore that all workers share; here it is a limit of the loop, which holds for
 * every loop that names the same service: a sample asks for one test at a time.
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
  const { concurrency } = limits ?? {};
  const least = typeof concurrency === "number" ? Math.min(concurrency, maxConcurrent) : undefined;
  return {
    ...options,
    limits: {
      ...limits,
      endpoint: limits?.endpoint ?? url,
      concurrency: least ?? concurrency ?? maxConcurrent,
    },
  };
}
