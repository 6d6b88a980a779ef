/** The actors of a configuration: the policy, its reference where a divergence from it counts, a critic where the estimator needs one. */

import type { ActorHandle } from "@rayling/core";
import { parseRewardSpec, resolveRewardModule } from "@rayling/reward-manager-registry";
import type { TrainerConfig } from "../config/trainer-config.ts";
import { TrainerConfigError } from "../errors.ts";
import { answerOf } from "../fit/policy-answers.ts";
import type { PolicyPatience } from "../fit/policy-answers.ts";
import { OpenAIPolicyActor } from "../policy/openai/openai-policy.ts";
import type { OpenAIPolicySettings } from "../policy/openai/settings.ts";
import type { Critic, CriticHandle, Policy, PolicyHandle } from "../policy/policy.ts";
import { TimedCriticActor, TimedPolicyActor } from "../policy/timed.ts";
import type { TimedPolicySettings } from "../policy/timed.ts";
import { arithmeticAlphabet } from "../tasks/arithmetic.ts";
import type { PromptDataset } from "../data/prompt-dataset.ts";
import type { TinySettings } from "../policy/tiny/settings.ts";
import { checkKwargs } from "./kwargs.ts";
import { needsCritic, optimSettingsOf } from "./trainer-options.ts";

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
}

interface Kind {
  readonly policy: () => PolicyHandle;
  /** Undefined: it has none. */
  readonly critic?: (() => CriticHandle) | undefined;
  /** Before the first step. */
  readonly warmStart?: (policy: PolicyHandle) => Promise<void>;
}

/** Rejects with TrainerConfigError, and with what the actors fail to start with. */
export async function openPolicies(
  config: TrainerConfig,
  context: PolicyContext,
): Promise<ConfiguredPolicies> {
  const { algorithm, rayling } = config;
  const { actor } = config.actorRolloutRef;
  const make = Object.hasOwn(kinds, rayling.policy) ? kinds[rayling.policy] : undefined;
  const kind = await (make ?? ofModule)(config, context);
  const hasCritic = needsCritic(config);
  if (hasCritic && kind.critic === undefined) {
    throw wrong(
      "rayling.critic",
      `is needed: algorithm.adv_estimator ${algorithm.advEstimator} has one, and the policy ${rayling.policy} brings none`,
      rayling.critic,
    );
  }
  const policy = kind.policy();
  await kind.warmStart?.(policy);
  const needsReference = actor.useKlLoss || algorithm.useKlInReward;
  return {
    policy,
    referencePolicy: needsReference ? await referenceOf(policy, kind, config.trainer) : undefined,
    critic: hasCritic ? kind.critic?.() : undefined,
  };
}

/** What the policy is before training. */
async function referenceOf(
  policy: PolicyHandle,
  kind: Kind,
  patience: PolicyPatience,
): Promise<PolicyHandle> {
  const reference = kind.policy();
  const asked = "the policy, asked for its weights,";
  const state = await answerOf(asked, policy.state.remote(), patience);
  const given = "the reference policy, given its weights,";
  await answerOf(given, reference.setState.remote(state), patience);
  return reference;
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

/** Loads jax-js. */
async function tiny(config: TrainerConfig, context: PolicyContext): Promise<Kind> {
  const { TinyCriticActor, TinyPolicyActor } = await import("../policy/tiny/index.ts");
  const { rayling, critic } = config;
  const { actor, rollout } = config.actorRolloutRef;
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, tinyKwargs);
  const { alphabet = rayling.task === null ? undefined : arithmeticAlphabet, ...kwargs } =
    rayling.policyKwargs as { readonly alphabet?: string };
  if (alphabet === undefined) {
    throw wrong(
      "rayling.policy_kwargs.alphabet",
      "is needed: the policy tiny reads and writes characters, and there is no rayling.task that has them",
      null,
    );
  }
  const settings = {
    contextLength: rollout.promptLength + rollout.responseLength,
    seed: rayling.seed,
    ...kwargs,
    alphabet,
  };
  const { warmStartSteps: steps } = rayling;
  const { totalSteps, train } = context;
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
      const answer = supervised.supervise.remote({ pairs, steps });
      await answerOf("the policy, asked for its warm start,", answer, config.trainer);
    },
  };
}

const timedKwargs: readonly (keyof TimedPolicySettings)[] = [
  "seconds",
  "scale",
  "rowsPerStep",
  "firstFinished",
  "responseTokens",
];

/** With the expected times, where it has none of its own. */
function timed({ rayling }: TrainerConfig): Kind {
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, timedKwargs);
  const { gen, oldLogProb, ref, values, updateActor, updateCritic, testing, saveCheckpoint } =
    rayling.expectedSeconds;
  const expected = {
    gen,
    old_log_prob: oldLogProb,
    ref,
    values,
    update_actor: updateActor,
    update_critic: updateCritic,
    testing,
    save_checkpoint: saveCheckpoint,
  };
  const given = Object.entries(expected).filter(([, seconds]) => seconds !== undefined);
  const seconds = Object.fromEntries(given) as Record<string, number>;
  const settings: TimedPolicySettings = { seconds, ...rayling.policyKwargs };
  return {
    policy: () => TimedPolicyActor.remote(settings),
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

/** What its settings may be, it says itself. */
function openai({ rayling }: TrainerConfig, { baseDirectory }: PolicyContext): Kind {
  checkKwargs("rayling.policy_kwargs", rayling.policyKwargs, openaiKwargs);
  const { updater, ...kwargs } = rayling.policyKwargs as unknown as OpenAIPolicySettings;
  const settings =
    updater === undefined ? kwargs : { ...kwargs, updater: { baseDirectory, ...updater } };
  return { policy: () => OpenAIPolicyActor.remote(settings) };
}

/** An actor class of the user's, `export const Policy = ray.remote(class ...)`, made with the policy_kwargs. */
async function ofModule({ rayling }: TrainerConfig, context: PolicyContext): Promise<Kind> {
  const { policy, critic, policyKwargs } = rayling;
  const own = await actorClassOf<Policy>("rayling.policy", policy, "Policy", context);
  const ownCritic =
    critic === null
      ? undefined
      : await actorClassOf<Critic>("rayling.critic", critic, "Critic", context);
  return {
    policy: () => own.remote(policyKwargs),
    critic: ownCritic && (() => ownCritic.remote(policyKwargs)),
  };
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
    const module = (await import(resolveRewardModule(path, baseDirectory))) as Readonly<
      Record<string, unknown>
    >;
    const found = module[name] as Partial<RemoteClass<Instance>> | undefined;
    if (typeof found?.remote === "function") return found as RemoteClass<Instance>;
    throw wrong(
      key,
      `is ${text}, which has no actor class ${name}; export it as ray.remote(class ...)`,
      text,
    );
  } catch (error) {
    if (error instanceof TrainerConfigError) throw error;
    const known = Object.keys(kinds).join(", ");
    throw wrong(
      key,
      `is none of ${known}, and no module: ${(error as Error).message}`,
      text,
      error,
    );
  }
}

function wrong(key: string, problem: string, value: unknown, cause?: unknown): TrainerConfigError {
  return new TrainerConfigError(
    `${key}: ${problem}`,
    { key, value, nearest: undefined },
    { cause },
  );
}
