/** The policy that learns on a CPU, and its critic: what a configuration makes of them. */

import { isList, isRecord } from "@rayling/reward-manager-registry/values";
import { needsCritic } from "../config/consistency.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { checkKwargs, refusal } from "../config/refusal.ts";
import type { PromptRow } from "../data/prompt-row.ts";
import { messageText } from "../policy/message-text.ts";
import { answerOf } from "../policy/policy-answers.ts";
import type { SupervisedPair } from "../policy/tiny/supervision.ts";
import { tinySettingsOf } from "../policy/tiny/tiny-settings.ts";
import type { TinySettings } from "../policy/tiny/tiny-settings.ts";
import { CharTokenizer } from "../policy/tiny/tokenizer.ts";
import { arithmeticAlphabet } from "../tasks/arithmetic.ts";
import { promptLimitsOf, withPolicyKeys } from "./policy-kind.ts";
import type { Kind, PolicyContext } from "./policy-kind.ts";
import { optimSettingsOf } from "./trainer-options.ts";

const tinyKwargs: readonly (keyof TinySettings)[] = [
  "alphabet",
  "contextLength",
  "layers",
  "width",
  "heads",
  "separator",
  "seed",
  "microBatchRows",
];

/** Supervised steps between two reports. */
const warmStartPart = 25;

/** Loads jax-js. Rejects with TrainerConfigError, DatasetError. */
export async function tiny(config: TrainerConfig, context: PolicyContext): Promise<Kind> {
  const { TinyCriticActor, TinyPolicyActor } = await import("../policy/tiny/index.ts");
  const { rayling, critic } = config;
  const { actor, rollout } = config.actorRolloutRef;
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, tinyKwargs);
  const { alphabet: given, ...kwargs } = rayling.policyKwargs as Partial<TinySettings> & {
    readonly alphabet?: string | null;
  };
  const alphabet =
    given ?? (rayling.task === null ? alphabetOf(context, kwargs.separator) : arithmeticAlphabet);
  const settings: TinySettings = {
    contextLength: rollout.promptLength + rollout.responseLength,
    seed: rayling.seed,
    ...kwargs,
    alphabet,
  };
  const { warmStartSteps: steps } = rayling;
  const { totalSteps, onWarmStart } = context;
  const ofPolicy = { ...settings, optim: optimSettingsOf(actor.optim, totalSteps) };
  const ofCritic = { ...settings, optim: optimSettingsOf(critic.optim, totalSteps) };
  await withPolicyKeys(config, () => tinySettingsOf(ofPolicy));
  if (needsCritic(config) && rayling.critic === null) {
    await withPolicyKeys(config, () => tinySettingsOf(ofCritic), "critic.optim");
  }
  const pairs = await withPolicyKeys(config, () => readablePairs(config, context, settings));
  return {
    policy: () => TinyPolicyActor.remote(ofPolicy),
    critic: () => TinyCriticActor.remote(ofCritic),
    warmStart: async (policy) => {
      if (steps === 0) return;
      const supervised = policy as ReturnType<typeof TinyPolicyActor.remote>;
      // Parts are as good as the whole, and somebody waits.
      for (let done = 0; done < steps;) {
        onWarmStart?.(done, steps);
        const part = Math.min(warmStartPart, steps - done);
        const answer = supervised.supervise.remote({ pairs, steps: part });
        await answerOf("the policy, asked for its warm start,", answer, config.trainer);
        done += part;
      }
      onWarmStart?.(steps, steps);
    },
  };
}

/**
 * Returns the pairs of the warm start, if there is one: of the prompts that the run trains on.
 * Rejects where the policy could not read the prompts, or answer them.
 */
async function readablePairs(
  config: TrainerConfig,
  { train, validation }: PolicyContext,
  settings: TinySettings,
): Promise<readonly SupervisedPair[]> {
  const tokenizer = new CharTokenizer(settings);
  const { contextLength } = settings;
  const { responseLength } = config.actorRolloutRef.rollout;
  const { warmStartSteps: steps } = config.rayling;
  const lengthOf = ({ rawPrompt }: Pick<PromptRow, "rawPrompt">): number =>
    tokenizer.encodeMessages(rawPrompt).length;
  const limits = promptLimitsOf(config, (prompts) =>
    prompts.map((rawPrompt) => lengthOf({ rawPrompt })),
  );
  const own = await train.limited(limits);
  const validated = await validation?.limited(limits);
  const longest = [...own.rows, ...(validated?.rows ?? [])].reduce(
    (most, row) => Math.max(most, lengthOf(row)),
    0,
  );
  if (longest + responseLength > contextLength) {
    const problem = `is ${contextLength}, which has no room for a prompt of ${longest} tokens and a response of ${responseLength}`;
    throw refusal("rayling.policy_kwargs.context_length", problem, contextLength);
  }
  if (steps === 0) return [];
  return own.rows.map((row) => {
    const { index, rawPrompt, groundTruth } = row;
    const answer = answerIn(groundTruth);
    const why = (problem: string): Error =>
      refusal("rayling.warm_start_steps", `is ${steps}, and ${problem}`, steps);
    if (answer === undefined) {
      throw why(
        `the ground truth of row ${index} is no text and no number, as a warm start needs, which teaches it as the answer: ${JSON.stringify(groundTruth)?.slice(0, 80)}`,
      );
    }
    const tokens = lengthOf(row) + tokenizer.encode(answer).length + 1;
    if (tokens > contextLength) {
      throw why(
        `row ${index} has ${tokens} tokens with its ground truth, for which the policy's context of ${contextLength} has no room`,
      );
    }
    return { prompt: rawPrompt, answer };
  });
}

/** Undefined: it is no answer that could be taught. */
function answerIn(groundTruth: unknown): string | undefined {
  if (typeof groundTruth === "string") return groundTruth;
  const isNumber = typeof groundTruth === "number" || typeof groundTruth === "bigint";
  return isNumber ? String(groundTruth) : undefined;
}

/** A table of more characters than that is no tiny policy's. */
const mostCharacters = 4096;

/** Returns the characters of the prompts and of their ground truths. */
function alphabetOf({ train, validation }: PolicyContext, separator: unknown = ""): string {
  const found = new Set<string>(String(separator));
  for (const { rawPrompt, groundTruth } of [...train.rows, ...(validation?.rows ?? [])]) {
    for (const text of [...rawPrompt.map(messageText), ...textsIn(groundTruth)]) {
      for (const character of text) found.add(character);
    }
  }
  if (found.size <= mostCharacters) return [...found].toSorted().join("");
  throw refusal(
    "rayling.policy_kwargs.alphabet",
    `is needed: the policy tiny reads and writes characters, and the data have ${found.size} different ones, more than ${mostCharacters}`,
    null,
  );
}

/** Returns what may stand in an answer that is compared with the ground truth. */
function textsIn(groundTruth: unknown): readonly string[] {
  if (isList(groundTruth)) return groundTruth.flatMap(textsIn);
  if (isRecord(groundTruth)) return Object.values(groundTruth).flatMap(textsIn);
  const text = typeof groundTruth === "boolean" ? String(groundTruth) : answerIn(groundTruth);
  return text === undefined ? [] : [text];
}
