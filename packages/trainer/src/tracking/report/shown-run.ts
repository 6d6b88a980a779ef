/** A training run as its page shows it, read from its files, and read on while it goes on. */

import { basename, dirname, resolve } from "node:path";
import type { StepLines } from "../files/current-timeline.ts";
import type { FailureCount, GenerationLine, MetricsLine } from "../files/run-lines.ts";
import { RunReader } from "../files/run-reader.ts";
import { rewardFailures, rewardLatency } from "./reward-figures.ts";
import type { RewardLatency } from "./reward-figures.ts";
import { runFacts, runSettings } from "./run-facts.ts";
import { runFigures } from "./run-figures.ts";
import type { Named } from "./run-figures.ts";
import { WholeCurves } from "./whole-curves.ts";
import type { Curve } from "./whole-curves.ts";
import { stepPhases } from "./step-phases.ts";
import type { StepPhases } from "./step-phases.ts";

/** Answers of one validation. */
export interface Validation {
  /** The step after which it was. */
  readonly step: number;
  readonly answers: readonly GenerationLine[];
}

/** Figures and facts of a run as a whole. */
export interface RunAbout {
  /** How long, how good, how much was waited, what was spent. */
  readonly figures: readonly Named[];
  /** Its command, commit and machine. */
  readonly facts: readonly Named[];
  /** Its settings by their whole names, as JSON. */
  readonly settings: Readonly<Record<string, string>>;
  readonly latency: RewardLatency;
  readonly failures: readonly FailureCount[];
  /** Warnings of the training, in their order. */
  readonly warnings: readonly RunWarning[];
}

/** A warning of the training. */
export interface RunWarning {
  readonly step: number;
  readonly message: string;
}

/** A run as a page asks for its parts. */
export interface ShownRun {
  readonly name: string;
  /** The last step; -1 before the first. */
  readonly lastStep: number;
  readonly about: RunAbout;
  readonly curves: Readonly<Record<string, Curve>>;
  readonly validations: readonly Validation[];
  /** Steps that have phases, rising. */
  readonly steps: readonly number[];
  /** Returns those of these steps that there are. */
  phasesOf(steps: readonly number[]): readonly StepPhases[];
}

/** Limits of memory for a run that goes on for long: steps with rewards in flight, validations. */
const kept = { mostSampled: 500, mostValidations: 100 };

/** A run whose page is shown while it goes on. */
export class FollowedRun implements ShownRun {
  readonly name: string;
  readonly #reader: RunReader;
  #metrics: readonly MetricsLine[] = [];
  #steps: ReadonlyMap<number, StepLines> = new Map();
  #about: RunAbout | undefined;
  readonly #whole: WholeCurves = new WholeCurves();
  #curves: Readonly<Record<string, Curve>> | undefined;

  /** @param folder of the run, with the files of the logger `file` */
  constructor(folder: string) {
    const whole = resolve(folder);
    this.name = `${basename(dirname(whole))}/${basename(whole)}`;
    this.#reader = new RunReader(whole, kept);
  }

  /**
   * Reads what has come since the last time. Rejects with TrackingError TRACKING_FILES for a file
   * of something else, and JsonlError for what cannot be read.
   */
  async refresh(): Promise<void> {
    if (!(await this.#reader.refresh())) return;
    this.#metrics = this.#reader.metrics.lines;
    const reported = this.#reader.timeline.steps.filter(([, lines]) => lines.phases.length > 0);
    this.#steps = new Map(reported.toSorted(([a], [b]) => a - b));
    this.#about = undefined;
    this.#curves = undefined;
  }

  /** When its first process began, in ms since 1970; Infinity where that is unknown. */
  get beganMs(): number {
    return this.#reader.timeline.starts[0]?.atMs ?? Infinity;
  }

  get lastStep(): number {
    return this.#metrics.at(-1)?.step ?? -1;
  }

  get about(): RunAbout {
    this.#about ??= this.#newAbout();
    return this.#about;
  }

  get curves(): Readonly<Record<string, Curve>> {
    this.#curves ??= this.#whole.shown(this.#metrics);
    return this.#curves;
  }

  get validations(): readonly Validation[] {
    return [...this.#reader.generations].map(([step, answers]) => ({ step, answers }));
  }

  get steps(): readonly number[] {
    return [...this.#steps.keys()];
  }

  phasesOf(steps: readonly number[]): readonly StepPhases[] {
    const metrics = new Map(this.#metrics.map(({ step, data }) => [step, data]));
    return steps.flatMap((step) => {
      const lines = this.#steps.get(step);
      return lines === undefined ? [] : [stepPhases(step, lines, metrics.get(step))];
    });
  }

  #newAbout(): RunAbout {
    const { starts, steps } = this.#reader.timeline;
    const rewards = steps.flatMap(([, lines]) => lines.rewards ?? []);
    const phases = steps.flatMap(([, lines]) => lines.phases);
    return {
      figures: runFigures({ metrics: this.#metrics, phases, rewards }),
      facts: runFacts(starts),
      settings: runSettings(starts),
      latency: rewardLatency(rewards),
      failures: rewardFailures(rewards),
      warnings: steps.flatMap(([, { warnings }]) =>
        warnings.map(({ step, message }) => ({ step, message })),
      ),
    };
  }
}
