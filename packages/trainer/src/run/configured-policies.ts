/**
 * The actors of a configuration: the policy, its reference where a divergence from it counts, a
 * critic where the estimator needs one.
 */

import { kill } from "@rayling/core";
import { messageText } from "../policy/message-text.ts";
import type { ActorHandle } from "@rayling/core";
import { parseRewardSpec, resolveRewardModule } from "@rayling/reward-manager-registry";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { snakeKey } from "../config/camel-keys.ts";
import { needsCritic } from "../config/consistency.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { refusal } from "../config/refusal.ts";
import { TrainerConfigError } from "../errors.ts";
import { answerOf } from "../policy/policy-answers.ts";
import type { PolicyTimeout } from "../policy/policy-answers.ts";
import { OpenAIPolicyActor } from "../policy/openai/openai-policy.ts";
import type { OpenAIPolicySettings } from "../policy/openai/openai-settings.ts";
import type { Critic, CriticHandle, Policy, PolicyHandle } from "../policy/policy.ts";
import { TimedCriticActor, TimedPolicyActor } from "../policy/timed-policy.ts";
import type { TimedPolicySettings } from "../policy/timed-policy.ts";
import { arithmeticAlphabet } from "../tasks/arithmetic.ts";
import type { PromptDataset } from "../data/prompt-dataset.ts";
import type { TinySettings } from "../policy/tiny/tiny-settings.ts";
import { checkKwargs } from "./kwargs.ts";
import { optimSettingsOf } from "./trainer-options.ts";

export interface ConfiguredPolicies {
  readonly policy: PolicyHandle;
  readonly referencePolicy: PolicyHandle | undefined;
  readonly critic: CriticHandle | undefined;
}

export interface PolicyContext {
  readonly baseDirectory: string;
  /** Undefined: only constant learning rates are possible. */
  readonly totalSteps: number | undefined;
  readonly train: PromptDataset;
  readonly validation: PromptDataset | undefined;
  /** Receives the supervised steps so far, and how many there will be. */
  readonly onWarmStart?: ((steps: number, of: number) => void) | undefined;
}

interface Kind {
  readonly policy: () => PolicyHandle;
  /** Default: another one, with the state that the policy has before training. */
  readonly reference?: (policy: PolicyHandle) => PolicyHandle;
  /** Undefined: it has none. */
  readonly critic?: (() => CriticHandle) | undefined;
  /** Runs before the first step. */
  readonly warmStart?: (policy: PolicyHandle) => Promise<void>;
}

/**
 * Returns functions that create the actors, and creates none yet. Loads the user's modules. Rejects
 * with TrainerConfigError.
 */
export async function planPolicies(
  config: TrainerConfig,
  context: PolicyContext,
): Promise<{ readonly kind: Kind; readonly critic: (() => CriticHandle) | undefined }> {
  const { algorithm, rayling } = config;
  const make = Object.hasOwn(kinds, rayling.policy) ? kinds[rayling.policy] : undefined;
  const kind = await (make ?? ofModule)(config, context);
  const hasCritic = needsCritic(config);
  const critic = (await ownCriticOf(config, context)) ?? kind.critic;
  if (hasCritic && critic === undefined) {
    throw refusal(
      "rayling.critic",
      `is needed: algorithm.adv_estimator ${algorithm.advEstimator} has one, and the policy ${rayling.policy} brings none`,
      rayling.critic,
    );
  }
  return { kind, critic: hasCritic ? critic : undefined };
}

/** Rejects with TrainerConfigError, and with what the actors fail to start with. */
export async function openPolicies(
  config: TrainerConfig,
  context: PolicyContext,
): Promise<ConfiguredPolicies> {
  const { algorithm } = config;
  const { actor } = config.actorRolloutRef;
  const { kind, critic } = await planPolicies(config, context);
  const made: (PolicyHandle | CriticHandle)[] = [];
  const kept = <Handle extends PolicyHandle | CriticHandle>(handle: Handle): Handle => {
    made.push(handle);
    return handle;
  };
  try {
    const policy = kept(kind.policy());
    await kind.warmStart?.(policy);
    const needsReference = actor.useKlLoss || algorithm.useKlInReward;
    const referencePolicy = needsReference
      ? (kind.reference?.(policy) ?? kept(kind.policy()))
      : undefined;
    if (referencePolicy !== undefined && referencePolicy !== policy) {
      await handOver(policy, referencePolicy, config.trainer);
    }
    return { policy, referencePolicy, critic: critic?.() };
  } catch (error) {
    await Promise.all(made.map((handle) => kill(handle)));
    throw error;
  }
}

/** The policy before training. */
async function handOver(
  policy: PolicyHandle,
  reference: PolicyHandle,
  timeout: PolicyTimeout,
): Promise<void> {
  const asked = "the policy, asked for its weights,";
  const state = await answerOf(asked, policy.state.remote(), timeout);
  const given = "the reference policy, given its weights,";
  await answerOf(given, reference.setState.remote(state), timeout);
}

type MakeKind = (config: TrainerConfig, context: PolicyContext) => Kind | Promise<Kind>;

const kinds: Readonly<Record<string, MakeKind>> = { tiny, openai, timed };

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

/** Loads jax-js. */
async function tiny(config: TrainerConfig, context: PolicyContext): Promise<Kind> {
  const { TinyCriticActor, TinyPolicyActor } = await import("../policy/tiny/index.ts");
  const { rayling, critic } = config;
  const { actor, rollout } = config.actorRolloutRef;
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, tinyKwargs);
  const { alphabet: given, ...kwargs } = rayling.policyKwargs as {
    readonly alphabet?: string | null;
  };
  const alphabet = given ?? (rayling.task === null ? alphabetOf(context) : arithmeticAlphabet);
  const settings = {
    contextLength: rollout.promptLength + rollout.responseLength,
    seed: rayling.seed,
    ...kwargs,
    alphabet,
  };
  const { warmStartSteps: steps } = rayling;
  const { totalSteps, train, onWarmStart } = context;
  return {
    policy: () =>
      TinyPolicyActor.remote({ ...settings, optim: optimSettingsOf(actor.optim, totalSteps) }),
    critic: () =>
      TinyCriticActor.remote({ ...settings, optim: optimSettingsOf(critic.optim, totalSteps) }),
    warmStart: async (policy) => {
      if (steps === 0) return;
      const pairs = train.rows.map(({ rawPrompt, groundTruth }) => ({
        prompt: rawPrompt,
        answer: String(groundTruth),
      }));
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

/** A table of more characters than that is no tiny policy's. */
const mostCharacters = 4096;

/** Returns the characters of the prompts and of their ground truths. */
function alphabetOf({ train, validation }: PolicyContext): string {
  const found = new Set<string>();
  for (const { rawPrompt, groundTruth } of [...train.rows, ...(validation?.rows ?? [])]) {
    for (const message of rawPrompt) {
      for (const character of messageText(message)) found.add(character);
    }
    for (const character of String(groundTruth)) found.add(character);
  }
  if (found.size <= mostCharacters) return [...found].toSorted().join("");
  throw refusal(
    "rayling.policy_kwargs.alphabet",
    `is needed: the policy tiny reads and writes characters, and the data have ${found.size} different ones, more than ${mostCharacters}`,
    null,
  );
}

const timedKwargs: readonly (keyof TimedPolicySettings)[] = [
  "seconds",
  "scale",
  "rowsPerStep",
  "firstFinished",
  "responseTokens",
];

/** The timed policy has the expected times unless policy_kwargs has times. */
function timed({ rayling }: TrainerConfig): Kind {
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, timedKwargs);
  const { reward: _reward, adv: _adv, ...phases } = rayling.expectedSeconds;
  // A policy's phases are called as verl's timers are.
  const seconds = Object.fromEntries(
    Object.entries(phases).flatMap(([phase, value]) =>
      value === undefined ? [] : [[snakeKey(phase), value]],
    ),
  );
  const settings: TimedPolicySettings = { seconds, ...rayling.policyKwargs };
  return {
    policy: () => TimedPolicyActor.remote(settings),
    // On the same GPU: its time is the policy's. There is no state to hand over.
    reference: (policy) => policy,
    critic: () => TimedCriticActor.remote(settings),
  };
}

const openaiKwargs: readonly (keyof OpenAIPolicySettings)[] = [
  "baseUrl",
  "model",
  "apiKey",
  "headers",
  "body",
  "maxConcurrency",
  "samplesPerRequest",
  "maxRetries",
  "timeoutMs",
  "secondMs",
  "tokenizer",
  "updater",
];

/** The policy checks its settings itself. */
function openai(config: TrainerConfig, { baseDirectory, totalSteps }: PolicyContext): Kind {
  const { rayling, actorRolloutRef } = config;
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, openaiKwargs);
  const { updater, ...kwargs } = rayling.policyKwargs as unknown as OpenAIPolicySettings;
  if (updater === undefined) return { policy: () => OpenAIPolicyActor.remote(kwargs) };
  const optim = optimSettingsOf(actorRolloutRef.actor.optim, totalSteps);
  const own = { baseDirectory, ...updater, options: { optim, ...updater.options } };
  return { policy: () => OpenAIPolicyActor.remote({ ...kwargs, updater: own }) };
}

/**
 * An actor class of the user's, `export const Policy = ray.remote(class ...)`, made with the
 * policy_kwargs, and with `optim` beside them.
 */
async function ofModule(config: TrainerConfig, context: PolicyContext): Promise<Kind> {
  const { policy, policyKwargs } = config.rayling;
  const own = await actorClassOf<Policy>("rayling.policy", policy, "Policy", context);
  const optim = optimSettingsOf(config.actorRolloutRef.actor.optim, context.totalSteps);
  return { policy: () => own.remote({ optim, ...policyKwargs }) };
}

/** Returns a function that creates the critic of `rayling.critic`, for any policy. */
async function ownCriticOf(
  { rayling, critic }: TrainerConfig,
  context: PolicyContext,
): Promise<(() => CriticHandle) | undefined> {
  if (rayling.critic === null) return undefined;
  const own = await actorClassOf<Critic>("rayling.critic", rayling.critic, "Critic", context);
  const optim = optimSettingsOf(critic.optim, context.totalSteps);
  return () => own.remote({ optim, ...rayling.policyKwargs });
}

interface RemoteClass<Instance> {
  readonly remote: (settings: Readonly<Record<string, unknown>>) => ActorHandle<Instance>;
}

async function actorClassOf<Instance>(
  key: string,
  text: string,
  defaultName: string,
  { baseDirectory }: PolicyContext,
): Promise<RemoteClass<Instance>> {
  try {
    const { path, name = defaultName } = parseRewardSpec(text);
    const module: Readonly<Record<string, unknown>> = await import(
      resolveRewardModule(path, baseDirectory)
    );
    const found = module[name] as Partial<RemoteClass<Instance>> | undefined;
    if (typeof found?.remote === "function") return found as RemoteClass<Instance>;
    throw refusal(
      key,
      `is ${text}, which has no actor class ${name}; export it as ray.remote(class ...)`,
      text,
    );
  } catch (error) {
    if (error instanceof TrainerConfigError) throw error;
    const known = Object.keys(kinds).join(", ");
    throw refusal(key, `is none of ${known}, and no module: ${messageOf(error)}`, text, {
      cause: error,
    });
  }
}
