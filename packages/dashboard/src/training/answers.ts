/**
 * Answers to a page that asks about training runs. A server that follows runs and a page that has
 * runs in its file share them: this knows no files and no sockets.
 */
import type { Curve, RunAbout, ShownRun, StepPhases, Validation } from "@rayling/trainer/runs";

/** A run in the list of runs. */
export interface ListedRun {
  /** The number by which a page asks for it. */
  readonly run: number;
  readonly name: string;
  /** Whether it is of this session. */
  readonly isOwn: boolean;
  /** -1 before the first. */
  readonly lastStep: number;
}

/** A run that can be asked for. */
export interface NumberedRun extends Pick<ListedRun, "run" | "isOwn"> {
  readonly shown: ShownRun;
}

/** One metric of several runs. */
export interface Metric {
  readonly name: string;
  readonly curves: readonly (Curve & { readonly run: number })[];
}

export interface MetricsAnswer {
  readonly total: number;
  readonly found: number;
  /** The first of them. */
  readonly shown: readonly Metric[];
}

export interface PhasesAnswer {
  /** How many steps have phases. */
  readonly total: number;
  readonly rows: readonly StepPhases[];
}

export interface GenerationsAnswer {
  /** Steps after which there was a validation with answers. */
  readonly steps: readonly number[];
  /** Null where there was none. */
  readonly shown: Validation | null;
}

/** Steps and answers of one run by itself. */
export interface DetailsAnswer {
  readonly run: number;
  readonly phases: PhasesAnswer;
  readonly generations: GenerationsAnswer;
}

export interface TrainingAnswer {
  readonly runs: readonly ListedRun[];
  /** Numbers of the runs that are compared. */
  readonly chosen: readonly number[];
  readonly metrics: MetricsAnswer;
  /** Facts of each run that is compared. */
  readonly about: readonly (RunAbout & { readonly run: number })[];
  /** Null where none is chosen. */
  readonly details: DetailsAnswer | null;
}

/** A query that names a run that there is not. */
export class UnknownRun extends Error {}

/** Runs that are compared at most: as many colours can be told apart. */
const mostRuns = 8;

/**
 * Query: `runs`, numbers with commas, by default those of this session; `of`, the one whose steps
 * and answers are shown, by default the first of them; and what `metricsAnswer`, `phasesAnswer` and
 * `generationsAnswer` take. Throws UnknownRun.
 */
export function trainingAnswer(
  query: URLSearchParams,
  runs: readonly NumberedRun[],
): TrainingAnswer {
  const chosen = chosenRuns(query.get("runs"), runs);
  const of = query.get("of") ?? "";
  const detailed = chosen.find(({ run }) => String(run) === of) ?? chosen[0];
  return {
    runs: runs.map(({ run, isOwn, shown: { name, lastStep } }) => ({ run, name, isOwn, lastStep })),
    chosen: chosen.map(({ run }) => run),
    metrics: metricsAnswer(query, chosen),
    about: chosen.map(({ run, shown }) => ({ run, ...shown.about })),
    details: detailed === undefined ? null : detailsAnswer(query, detailed),
  };
}

function chosenRuns(asked: string | null, runs: readonly NumberedRun[]): readonly NumberedRun[] {
  if (asked === null) return runs.filter(({ isOwn }) => isOwn).slice(0, mostRuns);
  const numbers = asked.split(",").filter((text) => text !== "" && text !== "none");
  return numbers.slice(0, mostRuns).map((text) => {
    const known = runs.find(({ run }) => String(run) === text);
    if (known === undefined) throw new UnknownRun(`there is no run ${text.slice(0, 20)}`);
    return known;
  });
}

/** Metrics of one answer at most. */
const mostMetrics = 32;

/** Shown where no words are asked for, as far as a run has them. */
const main: readonly RegExp[] = [
  /^critic\/score\/mean$/,
  /^val-core\//,
  /^reward\/exposed_wait_s$/,
  /^timing_s\/step$/,
  /^overlap_ratio$/,
  /trajectory_staleness\/mean$/,
  /^actor\/(pg_loss|ppo_kl|kl_loss|entropy|lr|grad_norm)$/,
  /^critic\/(vf_loss|lr)$/,
  /^response_length\/(mean|max)$/,
  /^reward\/(latency_p50_s|latency_p95_s|queue_wait_p95_s|pool_util|invalid_rate|retry_rate|cost)$/,
];

/** Query: `text`, words that the name of a metric must contain; by default the main ones. */
function metricsAnswer(query: URLSearchParams, runs: readonly NumberedRun[]): MetricsAnswer {
  const names = [...new Set(runs.flatMap(({ shown }) => Object.keys(shown.curves)))];
  const wanted = wantedOf(names, query.get("text") ?? "");
  return {
    total: names.length,
    found: wanted.length,
    shown: wanted.slice(0, mostMetrics).map((name) => ({
      name,
      curves: runs.flatMap(({ run, shown: { curves } }) => {
        const curve = curves[name];
        return curve === undefined ? [] : [{ run, ...curve }];
      }),
    })),
  };
}

function detailsAnswer(query: URLSearchParams, { run, shown }: NumberedRun): DetailsAnswer {
  const phases = phasesAnswer(query, shown);
  return { run, phases, generations: generationsAnswer(query, shown) };
}

/** Steps that are shown together at most. */
const mostRows = 40;

/** How many are the newest. */
const newest = 12;

/**
 * Query: `steps=newest` for the last few, by default all of them; `from` and `to`. Of more than can
 * be shown some are, spread evenly.
 */
function phasesAnswer(query: URLSearchParams, run: ShownRun): PhasesAnswer {
  const { steps } = run;
  const [from, to] = [numberIn(query, "from") ?? -Infinity, numberIn(query, "to") ?? Infinity];
  const within = steps.filter((step) => step >= from && step <= to);
  const wanted = query.get("steps") === "newest" ? within.slice(-newest) : spread(within);
  return { total: steps.length, rows: run.phasesOf(wanted) };
}

/** Query: `validation`, the step after which it was; by default the last one. */
function generationsAnswer(query: URLSearchParams, { validations }: ShownRun): GenerationsAnswer {
  const step = numberIn(query, "validation");
  const shown = validations.find((one) => one.step === step) ?? validations.at(-1) ?? null;
  return { steps: validations.map((one) => one.step), shown };
}

function numberIn(query: URLSearchParams, key: string): number | undefined {
  const text = query.get(key) ?? "";
  const value = Number(text);
  return text === "" || !Number.isFinite(value) ? undefined : value;
}

function wantedOf(names: readonly string[], text: string): readonly string[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length > 0) {
    return names.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
  }
  return main.flatMap((pattern) => names.filter((name) => pattern.test(name)));
}

/** Keeps the first and the last one. */
function spread(steps: readonly number[]): readonly number[] {
  if (steps.length <= mostRows) return steps;
  const every = (steps.length - 1) / (mostRows - 1);
  const places = new Set(Array.from({ length: mostRows }, (_, index) => Math.round(index * every)));
  return steps.filter((_, at) => places.has(at));
}
