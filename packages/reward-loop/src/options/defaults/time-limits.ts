/** How long a try, a sample and the start of a reward function may take. */

import { inherited, option, otherwise, timer } from "../table.ts";

export const timeLimitOptions = {
  /**
   * The time limit of a score function for one try, from its start. Default: as long as it takes,
   * with the manager rate_limited its timeout.
   */
  timeoutMs: option(
    timer,
    // A try may take no longer than all tries together.
    otherwise(
      "as long as it takes, with the manager rate_limited its timeout",
      ({ totalTimeoutMs }) => (typeof totalTimeoutMs === "number" ? totalTimeoutMs : undefined),
    ),
    { key: "attempt_timeout_ms" },
  ),
  /**
   * The time limit of a sample from when a worker takes it on, with its waiting and all of its
   * tries; time in the loop's own queue does not count. Default: as long as it takes.
   */
  totalTimeoutMs: option(timer, otherwise("as long as it takes")),
  /** How long the modules may take to load. Default: 60000. */
  startTimeoutMs: option(timer, inherited(60_000)),
};
