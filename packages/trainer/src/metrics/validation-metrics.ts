/**
 * How good the answers to the questions of a validation set are, by data source and variable:
 * mean@n, std@n, and best, worst and majority of k of n (verl `process_validation_metrics`,
 * `_val_metrics_update`).
 */

import { isRecord, present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../errors.ts";
import { meanOf } from "../values/sums.ts";
import { atOnce, inTurns } from "../values/turns.ts";
import type { Slices, Steps } from "../values/turns.ts";
import { meanMaxMin } from "./data-metrics.ts";
import { QuestionMetrics, Votes } from "./question-metrics.ts";

/** Columns, one entry for each answer. */
export interface ValidationResults {
  /** verl `data_source` of each answer; metrics are reported by it. */
  readonly dataSources: readonly string[];
  /** Answers to one question have one. */
  readonly sampleUids: readonly string[];
  /**
   * Variables, as "reward" and "acc"; texts are left out, but that "pred" is what a majority agrees
   * on. An answer that has null does not count for that variable, and where one that counts has no
   * "pred" there is no majority.
   */
  readonly infos: Readonly<Record<string, readonly unknown[]>>;
  /**
   * False for an answer whose score is invalid: it is left out, and its question has one less.
   * Default: all are valid.
   */
  readonly valid?: readonly boolean[];
  /** Number of turns of each answer. */
  readonly numTurns?: readonly number[];
}

/** metric by variable by data source. */
export type ValidationBySource = Readonly<
  Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>
>;

/** Returns the means of `val-core/*`, one for each data source, that are numbers. */
export function coreMeansOf(
  metrics: Readonly<Record<string, number>>,
): ReadonlyMap<string, number> {
  return new Map(
    Object.entries(metrics).filter(
      ([name, value]) => /^val-core\/.+\/mean@\d+$/.test(name) && Number.isFinite(value),
    ),
  );
}

/**
 * Returns `val-core/*`, the mean, best and majority over all answers of "acc" (or of "reward",
 * where there is no "acc"), and `val-aux/*`, all others. Throws TrainerInputError.
 */
export function validationMetrics(
  results: ValidationResults,
  options: ValidationMetricsOptions = {},
): Record<string, number> {
  return atOnce(metricSteps(results, options));
}

/**
 * Resolves with what `validationMetrics` returns, and rejects with what it throws. The thread does
 * other work in between: 1,319 questions with 8 answers each take some tenths of a second.
 */
export function validationMetricsInTurns(
  results: ValidationResults,
  { slices, ...options }: ValidationMetricsOptions & { readonly slices?: Slices } = {},
): Promise<Record<string, number>> {
  return inTurns(metricSteps(results, options), slices);
}

function* metricSteps(
  results: ValidationResults,
  options: ValidationMetricsOptions,
): Steps<Record<string, number>> {
  const metrics: Record<string, number> = {};
  for (const [source, variables] of Object.entries(yield* sourceSteps(results, options))) {
    const core = Object.hasOwn(variables, "acc") ? "acc" : "reward";
    for (const [variable, values] of Object.entries(variables)) {
      const most = Math.max(...Object.keys(values).map(answersIn));
      for (const [name, value] of Object.entries(values)) {
        const isCore =
          variable === core && /^(?:mean|maj|best)/.test(name) && answersIn(name) === most;
        metrics[`${isCore ? "val-core" : "val-aux"}/${source}/${variable}/${name}`] = value;
      }
    }
  }
  const { numTurns } = results;
  if (numTurns === undefined || numTurns.length === 0) return metrics;
  return { ...metrics, ...meanMaxMin("val-aux/num_turns", Float64Array.from(numTurns)) };
}

function answersIn(name: string): number {
  return Number(/@(\d+)/.exec(name)?.[1]);
}

/** Seed of the bootstrap, and handling of variables of mixed kinds. */
export interface ValidationMetricsOptions {
  /** Seed of the bootstrap. Default 42, as in verl. */
  readonly seed?: number;
  /**
   * Called with a variable that is a number in some answers to a question and something else in
   * others; the variable's metrics leave out that question. Default: throws TrainerInputError,
   * which names both.
   */
  readonly onMixed?: ((variable: string, question: string) => void) | undefined;
}

/**
 * Returns means over questions; questions with another number of answers have metrics of their own.
 * Throws TrainerInputError for columns of different lengths, and for values that are not numbers.
 */
export function processValidationMetrics(
  results: ValidationResults,
  options: ValidationMetricsOptions = {},
): ValidationBySource {
  return atOnce(sourceSteps(results, options));
}

function* sourceSteps(
  results: ValidationResults,
  { seed = 42, onMixed }: ValidationMetricsOptions,
): Steps<ValidationBySource> {
  checkLengths(results);
  const questions = new QuestionMetrics(seed);
  const predictions = results.infos["pred"];
  const collected: Collected = new Map();
  for (const { source, uid, rows } of questionsOf(results)) {
    const votes = votesOf(predictions, rows);
    for (const [variable, column] of Object.entries(results.infos)) {
      const known = rows.filter((row) => column[row] !== null && column[row] !== undefined);
      const values = valuesOf(column, known, { variable, uid, onMixed });
      if (values === undefined) continue;
      const ofKnown = known.length === rows.length ? votes : votesOf(predictions, known);
      const metrics = yield* questions.of(values, ofKnown);
      for (const [name, value] of Object.entries(metrics)) {
        const ofSource = entry(collected, source, () => new Map<string, Map<string, number[]>>());
        const ofVariable = entry(ofSource, variable, () => new Map<string, number[]>());
        entry(ofVariable, name, (): number[] => []).push(value);
      }
    }
    yield;
  }
  return nested(collected);
}

/** Values of the questions, by data source, variable and metric. */
type Collected = Map<string, Map<string, Map<string, number[]>>>;

interface Question {
  readonly source: string;
  readonly uid: string;
  readonly rows: readonly number[];
}

/** Returns the questions in the order of their first answers. */
function questionsOf({ dataSources, sampleUids, valid }: ValidationResults): Question[] {
  const questions = new Map<string, Map<string, number[]>>();
  for (const [row, source] of dataSources.entries()) {
    if (valid?.[row] === false) continue;
    const uids = entry(questions, source, () => new Map<string, number[]>());
    entry(uids, present(sampleUids[row], `the uid of row ${row}`), (): number[] => []).push(row);
  }
  return [...questions].flatMap(([source, uids]) =>
    [...uids].map(([uid, rows]) => ({ source, uid, rows })),
  );
}

/**
 * Returns the numbers of a variable; undefined for missing values, texts, lists and objects, and
 * for mixed values if `onMixed` is given.
 *
 * @throws TrainerInputError for mixed values otherwise
 */
function valuesOf(
  column: readonly unknown[],
  rows: readonly number[],
  {
    variable,
    uid,
    onMixed,
  }: Pick<ValidationMetricsOptions, "onMixed"> & {
    readonly variable: string;
    readonly uid: string;
  },
): Float64Array | undefined {
  const isNumber = (row: number): boolean =>
    typeof column[row] === "number" || typeof column[row] === "boolean";
  const [first] = rows;
  if (first === undefined || !isNumber(first)) return undefined;
  const other = rows.find((row) => !isNumber(row));
  if (other === undefined) return Float64Array.from(rows, (row) => Number(column[row]));
  if (onMixed !== undefined) {
    onMixed(variable, uid);
    return undefined;
  }
  throw new TrainerInputError(
    variable,
    `"${variable}" of an answer to ${uid} is ${String(column[other])}: a metric needs a number there, or the answer must be left out as invalid`,
  );
}

/** Returns the votes of answers; undefined where one has no "pred", and so no vote. */
function votesOf(
  predictions: readonly unknown[] | undefined,
  rows: readonly number[],
): Votes | undefined {
  if (predictions === undefined) return undefined;
  if (rows.some((row) => (predictions[row] ?? null) === null)) return undefined;
  const numbers = new Map<unknown, number>();
  const answers = Int32Array.from(rows, (row) => {
    const key = voteOf(predictions[row]);
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    return number;
  });
  return new Votes(answers);
}

/**
 * Returns one key for answers that are equal in Python: 1 and true, objects whatever the order of
 * their keys. A text is no other than itself, also where it is the JSON of an object.
 */
function voteOf(answer: unknown): unknown {
  if (typeof answer === "string") return `text ${answer}`;
  return typeof answer === "object" ? JSON.stringify(answer, asInPython) : asInPython("", answer);
}

function asInPython(_key: string, value: unknown): unknown {
  if (typeof value === "boolean" || typeof value === "bigint") return Number(value);
  return isRecord(value)
    ? Object.fromEntries(
        Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)),
      )
    : value;
}

function nested(collected: Collected): ValidationBySource {
  const means = (metrics: Map<string, number[]>): Record<string, number> =>
    Object.fromEntries(
      [...metrics].map(([name, values]) => [name, meanOf(Float64Array.from(values))]),
    );
  return Object.fromEntries(
    [...collected].map(([source, variables]) => [
      source,
      Object.fromEntries([...variables].map(([variable, metrics]) => [variable, means(metrics)])),
    ]),
  );
}

function checkLengths({
  dataSources,
  sampleUids,
  infos,
  valid,
  numTurns,
}: ValidationResults): void {
  const columns = { sampleUids, valid, numTurns, ...infos };
  for (const [name, column] of Object.entries(columns)) {
    if (column === undefined || column.length === dataSources.length) continue;
    throw new TrainerInputError(
      name,
      `${name} must have one entry for each of ${dataSources.length} answers; it has ${column.length}`,
    );
  }
}

function entry<T>(map: Map<string, T>, key: string, make: () => T): T {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
