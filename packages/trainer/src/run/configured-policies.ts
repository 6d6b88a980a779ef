/**
 * The actors of a configuration: the policy, its reference where a divergence from it counts, a
 * critic where the estimator needs one.
 */

import { kill } from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import { parseRewardSpec, resolveRewardModule } from "@rayling/reward-manager-registry";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { snakeKey } from "../config/camel-keys.ts";
import { needsCritic } from "../config/consistency.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { checkKwargs, refusal } from "../config/refusal.ts";
import { DatasetError, TrainerConfigError, TrainerInputError } from "../errors.ts";
import { answerOf } from "../policy/policy-answers.ts";
import type { PolicyTimeout } from "../policy/policy-answers.ts";
import { OpenAIPolicy, OpenAIPolicyActor } from "../policy/openai/openai-policy.ts";
import { checkOpenAISettings } from "../policy/openai/openai-settings.ts";
import type { OpenAIPolicySettings } from "../policy/openai/openai-settings.ts";
import { updaterMakerOf } from "../policy/openai/updater.ts";
import type { Critic, CriticHandle, Policy, PolicyHandle } from "../policy/policy.ts";
import { TimedCriticActor, TimedPolicy, TimedPolicyActor } from "../policy/timed-policy.ts";
import type { TimedPolicySettings } from "../policy/timed-policy.ts";
import { promptLimitsOf, withPolicyKeys } from "./policy-kind.ts";
import type { Kind, PolicyContext } from "./policy-kind.ts";
import { loaderOf } from "./prompt-files.ts";
import { tiny } from "./tiny-kind.ts";
import { optimSettingsOf } from "./trainer-options.ts";

export interface ConfiguredPolicies {
  readonly policy: PolicyHandle;
  readonly referencePolicy: PolicyHandle | undefined;
  readonly critic: CriticHandle | undefined;
}

/**
 * Returns functions that create the actors, and creates none yet. Loads the user's modules. Rejects
 * with TrainerConfigError, also for settings that the policies of ours refuse, and with
 * DatasetError for prompts that the policy tiny could not be asked.
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

type MakeKind = (config: TrainerConfig, context: PolicyContext) => Promise<Kind>;

const kinds: Readonly<Record<string, MakeKind>> = { tiny, openai, timed };

const timedKwargs: readonly (keyof TimedPolicySettings)[] = [
  "seconds",
  "scale",
  "rowsPerStep",
  "firstFinished",
  "responseTokens",
];

/** The timed policy has the expected times unless policy_kwargs has times. */
async function timed(config: TrainerConfig): Promise<Kind> {
  const { rayling } = config;
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, timedKwargs);
  const { reward: _reward, adv: _adv, ...phases } = rayling.expectedSeconds;
  // A policy's phases are called as verl's timers are.
  const seconds = Object.fromEntries(
    Object.entries(phases).flatMap(([phase, value]) =>
      value === undefined ? [] : [[snakeKey(phase), value]],
    ),
  );
  const settings: TimedPolicySettings = { seconds, ...rayling.policyKwargs };
  await withPolicyKeys(config, () => new TimedPolicy(settings));
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

async function openai(config: TrainerConfig, context: PolicyContext): Promise<Kind> {
  const { rayling, actorRolloutRef } = config;
  const { baseDirectory, totalSteps } = context;
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, openaiKwargs);
  const given = rayling.policyKwargs as unknown as OpenAIPolicySettings;
  await withPolicyKeys(config, () => checkOpenAISettings(given));
  const { updater: own, ...kwargs } = given;
  const optim = optimSettingsOf(actorRolloutRef.actor.optim, totalSteps);
  const updater = own && { baseDirectory, ...own, options: { optim, ...own.options } };
  const settings = updater === undefined ? kwargs : { ...kwargs, updater };
  return {
    policy: () => OpenAIPolicyActor.remote(settings),
    rehearse: () => rehearseOpenAI(config, context, settings),
  };
}

/** No server is asked: prompts are counted here, and an updater's module is loaded. */
async function rehearseOpenAI(
  config: TrainerConfig,
  { train, validation }: PolicyContext,
  settings: OpenAIPolicySettings,
): Promise<void> {
  const policy = new OpenAIPolicy(settings);
  const { updater, tokenizer } = settings;
  const limits = promptLimitsOf(config, (prompts) => policy.promptLengths(prompts));
  const asKey = (name: string, value: unknown) => (error: unknown) => {
    const isOwn = error instanceof DatasetError || error instanceof TrainerInputError;
    if (isOwn) throw error;
    throw refusal(`rayling.policy_kwargs.${name}`, messageOf(error), value, { cause: error });
  };
  await withPolicyKeys(config, async () => {
    if (updater !== undefined) await updaterMakerOf(updater).catch(asKey("updater", updater));
    const own = await train.limited(limits).catch(asKey("tokenizer", tokenizer));
    loaderOf(own, config);
    await validation?.limited(limits);
  });
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
