/** Checkpoints of a whole training: weights of its actors, its place, rollouts not trained yet. */

import { dirname } from "node:path";
import { warn } from "@rayling/core/terminal";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import { resumeCheckpoint, saveCheckpoint } from "../checkpoint/checkpoint-folder.ts";
import type { Resumed } from "../checkpoint/checkpoint-folder.ts";
import {
  keepReference,
  keptReference,
  referencePath,
  referenceSha256,
} from "../checkpoint/kept-reference.ts";
import type { PromptLoader } from "../data/prompt-loader.ts";
import { TrainerInputError } from "../errors.ts";
import { answerOf } from "../policy/policy-answers.ts";
import type { CriticHandle, PolicyHandle, PolicyState } from "../policy/policy.ts";
import { withPresentScores } from "../rollouts/present-scores.ts";
import type { RewardRequests } from "../rollouts/reward-requests.ts";
import {
  checkOutstanding,
  keptPlaceOf,
  keptTraining,
  restoredBatches,
} from "../rollouts/training-state.ts";
import type { TrainingStart } from "../rollouts/training-state.ts";
import { isDue, needsReference } from "../settings/training-settings.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import type { Learner } from "./learner.ts";

export interface TrainingCheckpointsParts {
  readonly policy: PolicyHandle;
  readonly referencePolicy: PolicyHandle | undefined;
  readonly critic: CriticHandle | undefined;
  readonly prompts: PromptLoader;
  readonly rewards: RewardRequests;
  readonly learner: Learner;
  readonly settings: TrainingSettings;
}

export class TrainingCheckpoints {
  readonly #parts: TrainingCheckpointsParts;
  #hasWarnedOfReference = false;

  constructor(parts: TrainingCheckpointsParts) {
    this.#parts = parts;
  }

  /** Whether a checkpoint belongs to the end of this step. */
  isDue(step: number): boolean {
    const { run } = this.#parts.settings;
    return isDue(run.saveFreq, step, run);
  }

  /** Rejects with CheckpointError, and with the error of an actor. */
  async save(training: TrainingStart): Promise<void> {
    const { policy, critic, prompts, rewards, learner, settings } = this.#parts;
    const { run, checkpoints } = settings;
    if (checkpoints === undefined) return;
    const { folder, keep } = checkpoints;
    const state = await answerOf("the policy, asked for its weights,", policy.state.remote(), run);
    const criticState =
      critic && (await answerOf("the critic, asked for its weights,", critic.state.remote(), run));
    const weights = (await this.#referenceState())?.weights;
    const sha256 = weights && referenceSha256(weights);
    // Before the checkpoint that names it.
    if (weights && sha256 !== undefined) await keepReference(folder, weights, sha256);
    const facts = { klCoef: learner.klCoef, referenceSha256: sha256 };
    const checkpoint = {
      globalStep: training.finishedSteps,
      policy: state,
      critic: criticState,
      ...keptTraining(training, prompts, facts, rewards),
    };
    await saveCheckpoint(checkpoint, { folder, keep: keep ?? undefined });
  }

  /**
   * Puts back the last checkpoint if the settings say so, and returns where the run goes on.
   * Rejects with TrainerInputError, which names the checkpoint and the option, where it is of a run
   * with other data, or with a policy of another shape.
   *
   * @param trains whether the run trains: rewards of rollouts that are still to be trained cost
   *   something, and one that only validates has no use for them
   */
  async resume(trains: boolean): Promise<TrainingStart> {
    const { prompts, rewards, learner, settings } = this.#parts;
    const { checkpoints, run, algorithm } = settings;
    const resumed =
      checkpoints &&
      (await resumeCheckpoint({
        folder: checkpoints.folder,
        mode: checkpoints.resumeMode,
        path: checkpoints.resumePath ?? undefined,
      }));
    if (resumed === undefined) return { finishedSteps: 0, nextBatch: 0, outstanding: [] };
    for (const { message } of resumed.passedOver) warn(`a checkpoint was passed over: ${message}`);
    const place = fitting(resumed, () => keptPlaceOf(resumed, prompts));
    const { batches, klCoef, rewardVersions, referenceSha256: reference, ...start } = place;
    const isTrained = trains && start.finishedSteps < run.totalSteps;
    const present = fitting(resumed, () => {
      if (!isTrained) return { batches: [], outdated: 0 };
      checkOutstanding(batches, settings);
      return withPresentScores(batches, rewardVersions, rewards.functions);
    });
    // Nothing is asked for before the weights are accepted.
    await this.#setWeights(resumed, start.finishedSteps);
    if (isTrained && reference !== undefined) await this.#setReference(resumed, reference);
    // A fixed coefficient is the configured one, even where the configuration was changed.
    if (algorithm.klCtrl.type === "adaptive") learner.klCoef = klCoef;
    if (present.outdated > 0) warn(ofOtherFunctions(start.finishedSteps, present.outdated));
    return { ...start, ...restoredBatches(present.batches, prompts, rewards, settings) };
  }

  async #setWeights(checkpoint: Resumed, finishedSteps: number): Promise<void> {
    const { policy, critic, settings } = this.#parts;
    const { run } = settings;
    const policyAnswer = policy.setState.remote(checkpoint.policy);
    await answerOf("the policy, given its weights,", policyAnswer, run).catch(
      notTaken(checkpoint, "policy"),
    );
    if (critic === undefined) return;
    if (checkpoint.critic !== undefined) {
      const answer = critic.setState.remote(checkpoint.critic);
      await answerOf("the critic, given its weights,", answer, run).catch(
        notTaken(checkpoint, "critic"),
      );
      return;
    }
    const message = `the checkpoint of step ${finishedSteps} is of a run without a critic: the critic begins with the weights that it has`;
    warn(message);
  }

  /**
   * Gives the reference policy the weights of the checkpoint's run, where it has others: a run that
   * goes on measures its divergence from the same ones.
   */
  async #setReference(checkpoint: Resumed, sha256: string): Promise<void> {
    const { referencePolicy, settings } = this.#parts;
    const present = await this.#referenceState();
    if (referencePolicy === undefined || present === undefined) return;
    if (referenceSha256(present.weights) === sha256) return;
    const folder = dirname(checkpoint.path);
    const path = referencePath(folder, sha256);
    const problem = `the reference policy has other weights than that run's (had it another ${keysOf.reference}?)`;
    const weights = await keptReference(folder, sha256);
    if (weights === undefined) {
      const missing = `${problem}, and these are not there to be put back: ${path}`;
      throw notResumed(checkpoint, "referencePolicy", missing);
    }
    const answer = referencePolicy.setState.remote({ ...present, weights });
    await answerOf("the reference policy, given its weights,", answer, settings.run).catch(
      notTaken(checkpoint, "reference"),
    );
    warn(
      `the run resumes from ${checkpoint.path}, and ${problem}: it is given those, from ${path}`,
    );
  }

  /** Undefined: no reference policy is used, or none with weights of its own. */
  async #referenceState(): Promise<PolicyState | undefined> {
    const { policy, referencePolicy, settings } = this.#parts;
    if (referencePolicy === undefined || referencePolicy === policy) return undefined;
    if (!needsReference(settings)) return undefined;
    try {
      const answer = referencePolicy.state.remote();
      return await answerOf("the reference policy, asked for its weights,", answer, settings.run);
    } catch (error) {
      if (codeOf(error) !== undefined) throw error;
      if (!this.#hasWarnedOfReference) {
        this.#hasWarnedOfReference = true;
        warn(
          `the reference policy gives no weights to be kept: a run that resumes takes its divergence from the reference policy that it is given: ${messageOf(error)}`,
        );
      }
      return undefined;
    }
  }
}

function ofOtherFunctions(step: number, scores: number): string {
  const count = scores === 1 ? "1 score" : `${scores} scores`;
  return `${count} in the checkpoint of step ${step} came from other reward functions, or other settings of them: where the rollouts are trained, they are scored again, with the rest of their groups`;
}

/** Names the checkpoint of what does not fit together, and the way out: `auto` is the default. */
function fitting<Value>(resumed: Resumed, check: () => Value): Value {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof TrainerInputError)) throw error;
    throw notResumed(resumed, error.input, error.message, error);
  }
}

const keysOf = {
  policy: "rayling.policy or rayling.policy_kwargs",
  critic: "rayling.critic or rayling.policy_kwargs",
  reference:
    "referencePolicy, or rayling.warm_start_steps, rayling.seed, rayling.policy or rayling.policy_kwargs",
};

const nameOf = { policy: "policy", critic: "critic", reference: "reference policy" };
const inputOf = { policy: "policy", critic: "critic", reference: "referencePolicy" };

/** An error with a code of its own says what became of the actor, not of the weights. */
function notTaken(resumed: Resumed, role: keyof typeof keysOf): (error: unknown) => never {
  return (error) => {
    // By its code: it comes from another thread.
    const code = codeOf(error);
    if (code !== undefined && code !== "TRAINER_INPUT") throw error;
    const problem = `the ${nameOf[role]} does not take its weights (had that run another ${keysOf[role]}?): ${messageOf(error)}`;
    throw notResumed(resumed, inputOf[role], problem, error);
  };
}

function notResumed(
  { path }: Resumed,
  input: string,
  problem: string,
  cause?: unknown,
): TrainerInputError {
  const wayOut =
    "checkpoints.resumeMode (trainer.resume_mode) disable begins anew, and checkpoints.folder (trainer.default_local_dir) names another folder";
  return new TrainerInputError(
    input,
    `the run does not fit the checkpoint ${path}: ${problem}. Else ${wayOut}`,
    { cause },
  );
}
