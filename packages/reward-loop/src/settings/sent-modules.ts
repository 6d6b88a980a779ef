/**
 * The user's modules on machines that have no files of the driver: they are part of the code that
 * the session sends, and are found there by the URLs that they have at the driver.
 */
import { addModule, hereOf } from "@rayling/core/code";
import { resolveRewardModule } from "@rayling/reward-manager-registry";
import type { PipelineSettings } from "./settings.ts";

/** Adds the modules of the settings to the code of the session. */
export function sendModules(
  settings: Pick<PipelineSettings, "reward" | "manager" | "tokenizer" | "baseDirectory">,
): void {
  const { reward, manager, tokenizer, baseDirectory } = settings;
  for (const spec of [reward, typeof manager === "string" ? undefined : manager, tokenizer]) {
    if (spec === undefined) continue;
    try {
      addModule(resolveRewardModule(spec.path, baseDirectory));
    } catch {
      // The executor that loads it reports why it is not there.
    }
  }
}

/** Returns the URL of a module on this machine. */
export function moduleHere(url: string): string {
  return hereOf(url) ?? url;
}
