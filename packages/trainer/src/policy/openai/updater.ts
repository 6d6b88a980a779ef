/**
 * The user's part of an `OpenAIPolicy` that trains: a module that can update the model behind the
 * server.
 */

import { resolveRewardModule } from "@rayling/reward-manager-registry";
import { hasMethod, isRecord } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import type { LogProbs, PolicyState, PolicyUpdate, TokenRows, UpdateMetrics } from "../policy.ts";
import type { UpdaterSpec } from "./openai-settings.ts";

/**
 * Only `update` is needed. Its rows have the ids of the rollouts: the server's ids, if it reports
 * them, or labels of texts.
 */
export interface PolicyUpdater {
  /** Performs one step of the optimizer over all of the rows. */
  update(update: PolicyUpdate): UpdateMetrics | Promise<UpdateMetrics>;
  /** Computes log-probabilities again; without it those of the rollout are used. */
  logProbs?(rows: TokenRows): LogProbs | Promise<LogProbs>;
  /**
   * State of the updater, with `setState`: both or none. Without them a checkpoint has only the
   * number of updates.
   */
  state?(): Omit<PolicyState, "version"> | Promise<Omit<PolicyState, "version">>;
  /** Restores a state of a checkpoint. */
  setState?(state: PolicyState): void | Promise<void>;
}

/**
 * Rejects with the loader's errors, with TrainerInputError for what is no updater, and with what
 * the module throws.
 */
export async function loadUpdater(spec: UpdaterSpec): Promise<PolicyUpdater> {
  const { path, name = defaultName, options = {} } = spec;
  const make = await updaterMakerOf(spec);
  const updater: unknown = await make(options);
  if (isUpdater(updater)) return updater;
  throw new TrainerInputError("updater", `${name} of ${path} made nothing with a method update`);
}

/** Returns the function that makes the updater, and does not call it. Rejects as `loadUpdater`. */
export async function updaterMakerOf({
  path,
  name = defaultName,
  baseDirectory = process.cwd(),
}: UpdaterSpec): Promise<(options: unknown) => unknown> {
  const exports: unknown = await import(resolveRewardModule(path, baseDirectory));
  const make: unknown = isRecord(exports) ? exports[name] : undefined;
  if (isFunction(make)) return make;
  throw new TrainerInputError("updater", `${path} exports no function ${name}`);
}

const defaultName = "createUpdater";

function isFunction(value: unknown): value is (options: unknown) => unknown {
  return typeof value === "function";
}

function isUpdater(value: unknown): value is PolicyUpdater {
  return hasMethod(value, "update");
}
