/**
 * Which reward function it was that gave a score: by its module's text and its settings, and by the reward model that it asks. Modules that it imports and files of models are not looked at;
 * where a model is served, and how long its answers may take, changes no score.
 */

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
  const { rewardModel } = settings;
  return digestOf([texts, name, managerOptions, kwargs, rewardModel, scorerOf(settings)]);
}

/** Of what scores where there is no function of the user's: the reward model by itself, or the default scorers. */
function scorerOf({ reward, discriminative, defaultScore }: PipelineSettings): unknown {
  if (discriminative !== undefined) {
    return [discriminative.tokenizer, discriminative.policyTokenizer];
  }
  if (reward !== undefined) return undefined;
  return [defaultScore.sandboxFusionUrl, defaultScore.memoryLimitMb];
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
