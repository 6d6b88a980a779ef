/**
 * Configurations as YAML files: those of a folder of the user's, and the presets that the package has. A file may stand on others, which it lists under `defaults`, by name, as Hydra has it: each
 * over those before, `_self_` for the file itself, at the end if it is not there.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isTree, merged, nearestOf, RewardConfigError } from "@rayling/reward-loop/config";
import type { ConfigTree } from "@rayling/reward-loop/config";
import { parseDocument } from "yaml";

/** Of the package, beside src and dist alike. */
const presetFolder: string = fileURLToPath(new URL("../../presets/", import.meta.url));

/** verl's own names for what differs in its engines alone. */
const aliases: Readonly<Record<string, string>> = {
  ppo_megatron_trainer: "ppo_trainer",
  ppo_veomni_trainer: "ppo_trainer",
};

/** The names of the package's presets. */
export function presetNames(): readonly string[] {
  return namesIn(presetFolder);
}

/**
 * With all that it stands on.
 *
 * @param name of a file, with .yaml or without; one with a "/" is a path
 * @param folder is looked through before the presets. Throws RewardConfigError.
 */
export function readConfigFile(
  name: string,
  folder: string | undefined,
  open: readonly string[] = [],
): ConfigTree {
  const path = pathOf(name, folder);
  if (open.includes(path)) {
    throw new RewardConfigError(name, `stands on itself: ${[...open, path].join(" -> ")}`);
  }
  const { defaults = [], ...own } = treeOf(path);
  if (!Array.isArray(defaults)) {
    throw new RewardConfigError(`${path}: defaults`, "must be a list of names", defaults);
  }
  const names = defaults.includes("_self_") ? defaults : [...defaults, "_self_"];
  return names.reduce<ConfigTree>((result, one) => {
    if (one === "_self_") return merged(result, own);
    if (typeof one === "string") {
      return merged(result, readConfigFile(one, folder, [...open, path]));
    }
    throw new RewardConfigError(
      `${path}: defaults`,
      `has ${JSON.stringify(one)}: only names of files are known here, not groups`,
      one,
    );
  }, {});
}

function pathOf(name: string, folder: string | undefined): string {
  if (/[/\\]/.test(name)) return resolve(name);
  const bare = name.replace(/\.ya?ml$/, "");
  for (const one of folder === undefined ? [presetFolder] : [resolve(folder), presetFolder]) {
    const known = aliases[bare] ?? bare;
    for (const candidate of [bare, known]) {
      if (namesIn(one).includes(candidate)) return join(one, `${candidate}.yaml`);
    }
  }
  const known = [...(folder === undefined ? [] : namesIn(resolve(folder))), ...presetNames()];
  throw new RewardConfigError(
    name,
    `there is no such configuration; there are ${known.join(", ")}`,
    undefined,
    nearestOf(bare, known),
  );
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith(".yaml"))
      .map((file) => file.slice(0, -".yaml".length))
      .toSorted();
  } catch (error) {
    throw new RewardConfigError(folder, `cannot be read: ${(error as Error).message}`);
  }
}

function treeOf(path: string): ConfigTree {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new RewardConfigError(path, `cannot be read: ${(error as Error).message}`);
  }
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) {
    throw new RewardConfigError(path, `is no YAML: ${error.message.split("\n", 1)[0] ?? ""}`);
  }
  const tree: unknown = document.toJS() ?? {};
  if (!isTree(tree)) throw new RewardConfigError(path, "must hold keys");
  return tree;
}
