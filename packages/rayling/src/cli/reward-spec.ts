/** PATH[:name] of flags: which module of the user's is meant, and which export of it. */

import { parseRewardSpec, resolveRewardModule } from "@rayling/reward-manager-registry";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { CliError } from "./cli-error.ts";

/** Throws CliError 2. */
export function readSpec(flag: string, text: string): RewardSpec {
  return translated(flag, () => parseRewardSpec(text));
}

/** The same, found from the current directory: beside a file of --rewards relative paths of a loop start at its folder, and those of flags do not. Throws CliError 2. */
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
    throw new CliError(2, `${flag}: ${(error as Error).message}`, { cause: error });
  }
}
