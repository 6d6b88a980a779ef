/**
 * The options that each registered manager reads (`managerOptions`, verl `reward.reward_kwargs`),
 * by verl's names: any other would have no effect. The options of a custom manager class are
 * unknown.
 */

import { camel } from "../describe-options.ts";
import { checkKeys } from "../read.ts";

/**
 * DapoOptions and GdpoOptions of reward-manager-registry, which checks them; those of rate_limited
 * are limits of the loop (functions.ts).
 */
export const managerKeys: Readonly<Record<string, readonly string[]>> = {
  naive: [],
  remote: [],
  rate_limited: [],
  limited: [],
  gdpo: ["experiment_name"],
  dapo: [
    "max_resp_len",
    "overlong_buffer_cfg",
    "overlong_buffer_cfg.enable",
    "overlong_buffer_cfg.len",
    "overlong_buffer_cfg.penalty_factor",
    "overlong_buffer_cfg.log",
  ],
};

/**
 * Whether a text is the place of a class, as PATH, PATH:name or pkg:name: it has a slash, a colon
 * or the ending of a module. Anything else is a name, and a misspelt one is refused as such.
 */
export function isManagerPath(manager: string): boolean {
  return !Object.hasOwn(managerKeys, manager) && /[/\\:]|\.[cm]?[jt]sx?$/.test(manager);
}

/** `overlongBuffer.len` of `overlong_buffer_cfg.len`. */
export function managerOptionOf(key: string): string {
  return key
    .split(".")
    .map((part) => camel(part.replace(/_cfg$/, "")))
    .join(".");
}

/** Throws RewardLoopOptionError. */
export function checkManagerOptions(manager: unknown, options: object): void {
  const known = typeof manager === "string" ? managerKeys[manager] : undefined;
  if (known !== undefined) checkWithin("managerOptions", options, known.map(managerOptionOf));
}

function checkWithin(at: string, options: object, known: readonly string[]): void {
  checkKeys(
    at,
    options,
    known.filter((one) => !one.includes(".")),
  );
  for (const [name, value] of Object.entries(options)) {
    const inner = known.filter((one) => one.startsWith(`${name}.`));
    if (inner.length === 0 || typeof value !== "object" || value === null) continue;
    checkWithin(
      `${at}.${name}`,
      value,
      inner.map((one) => one.slice(name.length + 1)),
    );
  }
}
