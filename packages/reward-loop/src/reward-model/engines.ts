/**
 * Differences between the servers of reward models: how a text is scored, and how the model is put
 * to sleep and woken.
 */

import { fieldOf, isList } from "@rayling/reward-manager-registry/values";
import type { EngineName } from "../options/defaults/reward-model.ts";

export interface RewardModelEngine {
  readonly scorePath: string;
  scoreBody(model: string, input: string): unknown;
  /** Undefined where the answer has none. */
  scoreOf(answer: unknown): number | undefined;
  readonly healthPath: string;
  /**
   * The environment variable from which a started server takes the key that it demands; undefined:
   * it takes an argument instead.
   */
  readonly keyVariable?: string;
  readonly sleep: { readonly path: string; readonly body?: unknown };
  readonly wakeUp: { readonly path: string; readonly body?: unknown };
}

/** Returns the last number of a list in the last item of an answer's data. */
function lastIn(answer: unknown, list: "probs" | "embedding"): unknown {
  return lastOf(fieldOf(lastOf(fieldOf(answer, "data")), list));
}

function lastOf(list: unknown): unknown {
  return isList(list) ? list.at(-1) : undefined;
}

/** The requests that verl sends (reward_loop.py, compute_score_disrm). */
export const engines: Readonly<Record<EngineName, RewardModelEngine>> = {
  vllm: {
    scorePath: "/classify",
    scoreBody: (model, input) => ({ model, input, use_activation: false }),
    scoreOf: (answer) => numberOf(lastIn(answer, "probs")),
    healthPath: "/health",
    keyVariable: "VLLM_API_KEY",
    sleep: { path: "/sleep?level=1" },
    wakeUp: { path: "/wake_up" },
  },
  sglang: {
    scorePath: "/v1/embeddings",
    scoreBody: (model, input) => ({ model, input }),
    scoreOf: (answer) => numberOf(lastIn(answer, "embedding")),
    healthPath: "/health",
    sleep: { path: "/release_memory_occupation", body: {} },
    wakeUp: { path: "/resume_memory_occupation", body: {} },
  },
};

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
