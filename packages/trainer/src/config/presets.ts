/** The configurations that the package has. */

import { fileURLToPath } from "node:url";
import { composeConfig, configNames } from "@rayling/config-tree";
import type { ComposedConfig, ComposedFile } from "@rayling/config-tree";
import { ownFile } from "../values/own-files.ts";
import { engineGroups } from "./verl/engine-keys.ts";

const presetFolder: string = fileURLToPath(ownFile("presets/"));

/** verl's own names for what differs in its engines alone. */
const aliases: Readonly<Record<string, string>> = {
  ppo_megatron_trainer: "ppo_trainer",
  ppo_veomni_trainer: "ppo_trainer",
};

export function presetNames(): readonly string[] {
  return configNames(presetFolder);
}

/** Whether the package says it, and not a file of the user's. */
export function isPreset({ path }: ComposedFile): boolean {
  return path.startsWith(presetFolder);
}

/**
 * A preset, or a file of the user's, with all that it stands on, and the overrides that change
 * values.
 *
 * @param folder is looked through before the presets. Throws ConfigError.
 */
export function composePreset(
  name: string,
  folder: string | undefined,
  overrides: readonly string[],
): ComposedConfig {
  const folders = folder === undefined ? [presetFolder] : [folder, presetFolder];
  return composeConfig(name, { folders, aliases, ignoredGroups: engineGroups }, overrides);
}
