/** Which reward function it was that gave a score: by its module's text and its settings. Modules that it imports are not looked at. */

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { resolveRewardModule } from "@rayling/reward-manager-registry";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import type { PipelineSettings } from "../settings.ts";
import { digestOf } from "./sample-key.ts";

export async function rewardVersion(settings: PipelineSettings): Promise<string> {
  const { reward, manager, managerOptions, tokenizer, baseDirectory } = settings;
  const specs = [reward, typeof manager === "string" ? undefined : manager, tokenizer];
  const texts = await Promise.all(specs.map((spec) => textOf(spec, baseDirectory)));
  const name = typeof manager === "string" ? manager : manager.name;
  const kwargs = specs.map((spec) => [spec?.name, spec?.rewardKwargs]);
  return digestOf([texts, name, managerOptions, kwargs]);
}

async function textOf(spec: RewardSpec | undefined, baseDirectory: string): Promise<string> {
  if (spec === undefined) return "";
  try {
    return await readFile(fileURLToPath(resolveRewardModule(spec.path, baseDirectory)), "utf8");
  } catch {
    // Whoever loads it says why it cannot be read.
    return spec.path;
  }
}
