/**
 * verl's `reward.sandbox_fusion`: the service in which programs are tested, and how much it takes at once. In verl that is a semaphore that all workers share; here it is a limit of the loop,
 * which holds for every loop that names the same service: a sample asks for one test at a time.
 */

import { RewardLoopOptionError } from "./errors.ts";
import { between, checkKeys, notAnOption } from "./option-checks.ts";
import type { RewardLimits } from "./policy-settings.ts";

export interface SandboxFusionUse {
  /** Of its `run_code`. */
  readonly url: string;
  /** verl `max_concurrent`: requests at once. Default 64; one that `limits` names counts, too. */
  readonly maxConcurrent?: number;
  /** verl `memory_limit_mb`. Default 1,024. */
  readonly memoryLimitMb?: number;
}

/** What it reads of a loop's options. */
interface SandboxAndLimits {
  readonly sandboxFusion?: SandboxFusionUse | undefined;
  readonly reward?: unknown;
  readonly limits?: RewardLimits | undefined;
}

/** The same loop with the service's limits. Throws RewardLoopOptionError. */
export function withSandboxLimits<Options extends SandboxAndLimits>(options: Options): Options {
  const { sandboxFusion, reward, limits } = options;
  if (sandboxFusion === undefined) return options;
  checkKeys<SandboxFusionUse>("sandboxFusion", sandboxFusion, [
    "url",
    "maxConcurrent",
    "memoryLimitMb",
  ]);
  const { url, maxConcurrent = 64, memoryLimitMb } = sandboxFusion;
  if (typeof url !== "string" || !/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    notAnOption("sandboxFusion.url", "the URL of a service", url);
  }
  between("sandboxFusion.maxConcurrent", maxConcurrent, { least: 1, whole: true });
  between("sandboxFusion.memoryLimitMb", memoryLimitMb, { above: 0 });
  if (reward !== undefined) {
    const wanted = "left out with a `reward` of your own, which says itself where programs run";
    throw new RewardLoopOptionError("sandboxFusion", wanted, url);
  }
  const { concurrency } = limits ?? {};
  const least = typeof concurrency === "number" ? Math.min(concurrency, maxConcurrent) : undefined;
  return {
    ...options,
    limits: { endpoint: url, ...limits, concurrency: least ?? concurrency ?? maxConcurrent },
  };
}
