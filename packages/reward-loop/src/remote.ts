/**
 * verl's manager remote: the naive one, whose score function runs in processes of its own. In verl they are one pool per worker (of `reward.num_workers`), handed out in turn, without
 * deadlines or restarts, and a function that is declared async is refused; here they are the loop's executors in processes instead of threads, with all that executors have, and
 * take every function.
 */

import { RewardLoopOptionError } from "./errors.ts";
import { checkKeys } from "./options/read.ts";

/** What it reads of a loop's options. */
interface ManagerAndIsolation {
  readonly manager?: unknown;
  readonly managerOptions?: Readonly<Record<string, unknown>> | undefined;
  readonly executorIsolation?: "thread" | "process" | undefined;
}

/** The same loop without that manager, which has no options of its own: `executors` says how many processes a worker has. Throws RewardLoopOptionError. */
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
