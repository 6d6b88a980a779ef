/**
 * PATH[:name] in flags: the user's module, and its export.
 */

import { parseRewardSpec, resolveRewardModule } from "@rayling/reward-manager-registry";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";

/** Throws CliError 2. */
export function readSpec(flag: string, text: string): RewardSpec {
  return translated(flag, () => parseRewardSpec(text));
}

/**
 * Reads a spec relative to the current directory: with --rewards, relative paths of a loop start at
 * the folder of its file, but paths in flags do not. Throws CliError 2.
 */
export function readSpecFromHere(flag: string, text: string): RewardSpec {
  return translated(flag, () => {
    const spec = parseRewardSpec(text);
    return { ...spec, path: resolveRewardModule(spec.path, process.cwd()) };
  });
}

function translated(flag: string, read: () => RewardSpec): RewardSpec {
  try {
    return read();
  } catch (error) {
    throw new CliError(2, `${flag}: ${messageOf(error)}`, { cause: error });
  }
}
