/**
 * The lines of a timeline that count. A process that resumed from a checkpoint reports the later
 * steps again, and one that began anew in the folder reports all steps again: lines of earlier
 * processes of such a step, and of the steps after it, are dropped.
 */

import type {
  PhaseLine,
  RewardsLine,
  SampleLine,
  StartLine,
  TimelineLine,
  WarningLine,
} from "./run-lines.ts";

/** Lines of one step. */
export interface StepLines {
  readonly phases: PhaseLine[];
  readonly samples: SampleLine[];
  readonly warnings: WarningLine[];
  rewards: RewardsLine | undefined;
}

interface ProcessLines {
  readonly start: StartLine | undefined;
  /** The lowest step that it reported; a first step stands for all steps. */
  first: number;
  readonly steps: Map<number, StepLines>;
}

export class CurrentTimeline {
  readonly #processes: ProcessLines[] = [];
  readonly #mostSampled: number;

  /** @param mostSampled steps of a process whose samples are kept: the newest */
  constructor(mostSampled: number = Infinity) {
    this.#mostSampled = mostSampled;
  }

  add(line: TimelineLine): void {
    if (line.type === "start") this.#begin(line);
    else this.#addTo(this.#processes.at(-1) ?? this.#begin(undefined), line);
  }

  /** How its processes began, the first one first. */
  get starts(): readonly StartLine[] {
    return this.#processes.flatMap(({ start }) => start ?? []);
  }

  /** Steps in the order in which they were reported. */
  get steps(): readonly (readonly [step: number, lines: StepLines])[] {
    return this.#processes.flatMap(({ steps }) => [...steps]);
  }

  #begin(start: StartLine | undefined): ProcessLines {
    const process = { start, first: Infinity, steps: new Map() };
    this.#processes.push(process);
    return process;
  }

  #addTo(process: ProcessLines, line: Exclude<TimelineLine, StartLine>): void {
    const first = line.step <= 1 ? -Infinity : line.step;
    // A process that resumes validates its checkpoint, and warns of a step that it does not train.
    if (line.type === "warning") this.#forgetWarnings(line.step);
    else if (first < process.first) {
      process.first = first;
      for (const { steps } of this.#processes.slice(0, -1)) {
        for (const step of steps.keys()) if (step >= first) steps.delete(step);
      }
    }
    const known = process.steps.get(line.step);
    const own = known ?? { phases: [], samples: [], warnings: [], rewards: undefined };
    if (known === undefined) process.steps.set(line.step, own);
    if (line.type === "phase") own.phases.push(line);
    else if (line.type === "rewards") own.rewards = line;
    else if (line.type === "warning") own.warnings.push(line);
    else {
      if (own.samples.length === 0) this.#forgetSamples(process);
      own.samples.push(line);
    }
  }

  /** A validation that is reported again takes the place of the earlier one, and of later ones. */
  #forgetWarnings(from: number): void {
    for (const { steps } of this.#processes.slice(0, -1)) {
      for (const [step, { warnings }] of steps) if (step >= from) warnings.length = 0;
    }
  }

  #forgetSamples({ steps }: ProcessLines): void {
    const sampled = [...steps.values()].filter(({ samples }) => samples.length > 0);
    for (const { samples } of sampled.slice(0, Math.max(0, 1 + sampled.length - this.#mostSampled)))
      samples.length = 0;
  }
}
