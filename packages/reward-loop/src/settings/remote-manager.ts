/**
 * verl's manager remote: the naive one, whose score function runs in separate processes. In verl
 * they are one pool per worker (of `reward.num_workers`), used in turn, without deadlines or
 * restarts, and an async function is refused; here they are the loop's executors in processes
 * instead of threads, with all features of executors, and take every function.
 */

import { RewardLoopOptionError } from "../errors.ts";
import { checkKeys } from "../options/read.ts";

/** The options that the manager concerns. */
interface ManagerAndIsolation {
  readonly manager?: unknown;
  readonly managerOptions?: Readonly<Record<string, unknown>> | undefined;
  readonly executorIsolation?: "thread" | "process" | undefined;
}

/**
 * Replaces the manager, which has no options of its own, by executors in processes: `executors` is
 * their number per worker. Throws RewardLoopOptionError.
 */
export function withoutRemote<Options extends ManagerAndIsolation>(options: Options): Options {
  const { manager, managerOptions = {}, executorIsolation } = options;
  if (manager !== "remote") return options;
  checkKeys("managerOptions", managerOptions, []);
  if (executorIsolation === "thread") {
    throw new RewardLoopOptionError(
      "executorIsolation",
      'left out, or "process", with the manager remote',
      executorIsolation,
    );
  }
  return { ...options, manager: "naive", executorIsolation: "process" };
}
