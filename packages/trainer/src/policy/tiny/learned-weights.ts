/**
 * Weights that learn, shared by the tiny policy and the tiny critic. Owns the weights, the moments
 * of the optimizer and the place in the schedule, and is saved and restored as a whole.
 *
 * Weights are replaced, never changed: a caller that took them before an update keeps the earlier
 * ones.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import type { PolicyState, UpdateMetrics } from "../policy.ts";
import { firstWeights } from "./network/initial-weights.ts";
import type { Architecture } from "./network/initial-weights.ts";
import type { Gradient } from "./network/network.ts";
import { adamWStep, noMoments } from "./optimizer/adamw.ts";
import type { Moments, Weights } from "./optimizer/adamw.ts";
import { checkLearnedSettings, settingsAsState, settingsIn } from "./learned-settings.ts";
import type { LearnedSettings } from "./learned-settings.ts";
import { learningRateOf } from "./optimizer/optimizer-settings.ts";
import type { ResolvedOptimizerSettings } from "./optimizer/optimizer-settings.ts";
import type { ResolvedTinySettings } from "./tiny-settings.ts";

/**
 * Named numbers of an owner, kept with the state. Whole and below 2^24, so that float32 has them
 * exactly.
 */
export type Counters = Readonly<Record<string, number>>;

export class LearnedWeights {
  readonly #settings: LearnedSettings;
  #optim: ResolvedOptimizerSettings;
  #weights: Weights;
  #moments: Moments;
  /** Moments of the warm start, which ends with the first update. */
  #warmStart: Moments | undefined;
  /** Whether there was a warm start, for the schedule. */
  #isSupervised = false;
  #version = 0;
  #scheduleSteps = 0;

  constructor(settings: ResolvedTinySettings, architecture: Architecture) {
    this.#settings = settings;
    this.#optim = settings.optim;
    this.#weights = firstWeights(architecture, settings.seed);
    this.#moments = noMoments(this.#weights);
  }

  get weights(): Weights {
    return this.#weights;
  }

  /** Updates so far. */
  get version(): number {
    return this.#version;
  }

  get warmStartSteps(): number {
    return this.#warmStart?.steps ?? 0;
  }

  /** Replaces the settings of the optimiser: the schedule of the learning rate begins anew. */
  setOptim(optim: ResolvedOptimizerSettings): void {
    this.#optim = optim;
    this.#scheduleSteps = 0;
  }

  /** Learns nothing: the weights stay, and the learning rate advances if asked. */
  pass(stepsSchedule: boolean): UpdateMetrics {
    const lr = this.#learningRate();
    if (stepsSchedule) this.#scheduleSteps += 1;
    return { gradNorm: 0, lr };
  }

  /** @throws TrainerInputError for gradients that are not finite, before anything has changed */
  update(gradients: Weights, stepsSchedule: boolean): UpdateMetrics {
    const lr = this.#learningRate();
    const step = adamWStep({
      weights: this.#weights,
      gradients,
      moments: this.#moments,
      lr,
      settings: this.#optim,
    });
    this.#weights = step.weights;
    this.#moments = step.moments;
    this.#warmStart = undefined;
    this.#version += 1;
    if (stepsSchedule) this.#scheduleSteps += 1;
    return { gradNorm: step.gradNorm, lr };
  }

  /**
   * A step with moments of its own, before training: it counts neither as an update nor for the
   * schedule.
   */
  warmStart(gradients: Weights, lr: number): void {
    const step = adamWStep({
      weights: this.#weights,
      gradients,
      moments: this.#warmStart ?? noMoments(this.#weights),
      lr,
      settings: this.#optim,
    });
    this.#weights = step.weights;
    this.#warmStart = step.moments;
    this.#isSupervised = true;
  }

  /** Copies. */
  state(counters: Counters): PolicyState {
    const supervised = this.#isSupervised ? { supervised: 1 } : {};
    const counts = { scheduleSteps: this.#scheduleSteps, ...supervised, ...counters };
    return {
      version: this.#version,
      weights: copied("", this.#weights),
      optimizer: {
        ...Object.fromEntries(
          Object.entries(counts).map(([name, count]) => [name, Float32Array.of(count)]),
        ),
        ...settingsAsState(this.#settings),
        ...momentsAsState("adam", this.#moments),
        ...(this.#warmStart === undefined ? {} : momentsAsState("warmStart", this.#warmStart)),
      },
    };
  }

  /**
   * The owner's counters. Where the state has nothing of an optimiser, as for a policy that only
   * answers, it starts anew.
   *
   * @throws TrainerInputError for a state of another shape, or learned with other settings, before
   *   anything has changed
   */
  setState({ version, weights, optimizer }: PolicyState, names: readonly string[]): Counters {
    if (!Number.isSafeInteger(version) || version < 0) {
      throw new TrainerInputError("version", `version must be a whole number, not ${version}`);
    }
    checkLearnedSettings(this.#settings, optimizer);
    const next = likeOf("weights", this.#weights, "", weights);
    requireNames("weights", Object.keys(this.#weights), Object.keys(weights));
    if (Object.keys(optimizer).length === 0) {
      this.#moments = noMoments(next);
      this.#warmStart = undefined;
      this.#isSupervised = false;
      this.#scheduleSteps = 0;
    } else {
      const warmStart = "warmStart.steps" in optimizer;
      const supervised = "supervised" in optimizer;
      const counters = supervised ? ["supervised", ...names] : names;
      const named = [...counters, ...settingsIn(optimizer)];
      const expected = this.#optimizerNames(named, warmStart);
      requireNames("optimizer", expected, Object.keys(optimizer));
      const moments = momentsOf("adam", next, optimizer);
      this.#warmStart = warmStart ? momentsOf("warmStart", next, optimizer) : undefined;
      this.#moments = moments;
      // A state of an earlier version has the moments alone.
      this.#isSupervised = supervised || warmStart;
      this.#scheduleSteps = countOf(optimizer, "scheduleSteps");
    }
    this.#weights = next;
    this.#version = version;
    return Object.fromEntries(
      names.map((name) => [name, name in optimizer ? countOf(optimizer, name) : 0]),
    );
  }

  #learningRate(): number {
    return learningRateOf(this.#optim, this.#isSupervised)(this.#scheduleSteps);
  }

  #optimizerNames(named: readonly string[], warmStart: boolean): string[] {
    const names = (prefix: string): string[] => [
      `${prefix}.steps`,
      ...["mean", "square"].flatMap((moment) =>
        Object.keys(this.#weights).map((name) => `${prefix}.${moment}.${name}`),
      ),
    ];
    return ["scheduleSteps", ...named, ...names("adam"), ...(warmStart ? names("warmStart") : [])];
  }
}

/** Returns the gradient of a batch from those of its parts. */
export function gradientSum(parts: Iterable<Gradient>, like: Weights): Gradient {
  const { mean: gradients } = noMoments(like);
  let weighted = 0;
  for (const part of parts) {
    weighted += part.weighted;
    for (const [name, slopes] of Object.entries(part.gradients)) {
      const sum = present(gradients[name], name);
      for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? NaN) + (slopes[i] ?? NaN);
    }
  }
  return { weighted, gradients };
}

function momentsAsState(prefix: string, { steps, mean, square }: Moments): Weights {
  return {
    [`${prefix}.steps`]: Float32Array.of(steps),
    ...copied(`${prefix}.mean.`, mean),
    ...copied(`${prefix}.square.`, square),
  };
}

function momentsOf(prefix: string, like: Weights, optimizer: Weights): Moments {
  return {
    steps: countOf(optimizer, `${prefix}.steps`),
    mean: likeOf("optimizer", like, `${prefix}.mean.`, optimizer),
    square: likeOf("optimizer", like, `${prefix}.square.`, optimizer),
  };
}

function copied(prefix: string, weights: Weights): Weights {
  return Object.fromEntries(
    Object.entries(weights).map(([name, values]) => [`${prefix}${name}`, values.slice()]),
  );
}

/** Copies of what is called like the weights. */
function likeOf(input: string, like: Weights, prefix: string, given: Weights): Weights {
  return Object.fromEntries(
    Object.entries(like).map(([name, { length }]) => {
      const values = given[`${prefix}${name}`];
      if (values?.length !== length) {
        throw new TrainerInputError(
          input,
          `${input} must have ${prefix}${name} with ${length} numbers, which follow from alphabet, contextLength, layers and width; it has ${values?.length ?? "none"}`,
        );
      }
      return [name, Float32Array.from(values)];
    }),
  );
}

function countOf(optimizer: Weights, name: string): number {
  const count = optimizer[name]?.[0];
  if (count === undefined || !Number.isSafeInteger(count) || count < 0) {
    throw new TrainerInputError("optimizer", `${name} must be a whole number, not ${count}`);
  }
  return count;
}

function requireNames(input: string, expected: readonly string[], given: readonly string[]): void {
  const missing = expected.filter((name) => !given.includes(name));
  const unknown = given.filter((name) => !expected.includes(name));
  if (missing.length + unknown.length === 0) return;
  throw new TrainerInputError(
    input,
    `${input} belongs to another model: it lacks [${missing.join(", ")}] and has [${unknown.join(", ")}]`,
  );
}
