/** What the managers that have a name read of a loop's `managerOptions`: any other option would do nothing. Those of rate_limited and remote, which are the loop's own, stand with them. */

import type { DapoOptions, GdpoOptions, OverlongBuffer } from "@rayling/reward-manager-registry";
import { checkKeys } from "./option-checks.ts";

/** Of a manager of the user's nothing is known, and of a name that there is not the registry says so. Throws RewardLoopOptionError. */
export function checkManagerOptions(
  manager: unknown,
  options: Readonly<Record<string, unknown>>,
): void {
  const at = "managerOptions";
  if (manager === "naive") checkKeys(at, options, []);
  if (manager === "gdpo") checkKeys<GdpoOptions>(at, options, ["experimentName"]);
  if (manager !== "dapo") return;
  checkKeys<DapoOptions>(at, options, ["maxRespLen", "overlongBuffer"]);
  const { overlongBuffer: buffer } = options as DapoOptions;
  if (typeof buffer !== "object" || buffer === null) return;
  const names = ["enable", "len", "penaltyFactor", "log"] as const;
  checkKeys<OverlongBuffer>(`${at}.overlongBuffer`, buffer, names);
}
