/** Keys of `reward.reward_kwargs`, the settings of a manager, that it would not read. */

import { managerKeys, managerOptionOf } from "../../options/defaults/managers.ts";
import { managerOptionsOf } from "../manager-options.ts";
import { registeredManagerOf } from "../reward-keys.ts";
import type { RewardConfig } from "../reward-keys.ts";
import { keysOf, nearestOf, treeOf, valueAt } from "@rayling/config-tree";
import { rateLimitedOptions } from "../../options/defaults/functions.ts";
import { fileEntries } from "../table-keys.ts";
import type { UnusedKey } from "./unused-key.ts";

const ofRateLimited = fileEntries(rateLimitedOptions).map(([key]) => key);

/** Settings of a class of the user's are unknown, so none is unused. */
export function unusedManagerSettings(config: RewardConfig): UnusedKey[] {
  const name = registeredManagerOf(config) ?? "";
  const own = managerKeys[name];
  if (own === undefined) return [];
  const at = "reward.reward_kwargs";
  const given = treeOf(config.reward_kwargs);
  const options = own.map(managerOptionOf);
  const unread = keysOf(given)
    .filter((key) => valueAt(given, key.split(".")) !== null)
    .filter((key) => !options.includes(managerOptionOf(key)))
    .map((key) => insteadOf(key, name, own));
  const unused = unread.map(({ key, instead }) => ({
    key: `${at}.${key}`,
    value: valueAt(given, key.split(".")),
    why: `and the manager ${name} does not read it`,
    ...(instead === undefined ? {} : { instead }),
  }));
  const { maxRespLen, overlongBuffer } = managerOptionsOf(given);
  if (name !== "dapo" || maxRespLen === undefined || overlongBuffer !== undefined) return unused;
  const why = `and there is no ${at}.overlong_buffer_cfg that it is for`;
  return [...unused, { key: `${at}.max_resp_len`, value: maxRespLen, why }];
}

function insteadOf(
  key: string,
  name: string,
  own: readonly string[],
): { readonly key: string; readonly instead: string | undefined } {
  if (ofRateLimited.includes(key)) {
    const isRead = ["rate_limited", "limited"].includes(name);
    return { key, instead: isRead ? `reward.${key}` : `reward.limits.${key}` };
  }
  const nearest = nearestOf(key, own);
  if (nearest !== undefined) return { key, instead: `reward.reward_kwargs.${nearest}` };
  const [other] = Object.entries(managerKeys).find(([, keys]) => keys.includes(key)) ?? [];
  return { key, instead: other && `reward.reward_manager.name=${other}` };
}
