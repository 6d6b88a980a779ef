/**
 * Judges beside each other, from the reward logs of the same samples: how they agree, how they
 * compare with labels, and the samples that they disagree on.
 */

import { RewardLoopOptionError } from "../errors.ts";
import { checkKeys } from "../options/read.ts";
import { calibrationAt, separationOf } from "./calibration.ts";
import type { Calibration, LabelledScore, Separation } from "./calibration.ts";
import type { ScorePair } from "./kappa.ts";
import { matchedScores } from "./matched-scores.ts";
import type { MatchedScores, MatchOptions, SampleLabel } from "./matched-scores.ts";
import { agreementOf, isWithin } from "./pair-agreement.ts";
import type { PairAgreement } from "./pair-agreement.ts";

/** The reward log of one judge. */
export interface JudgeLog {
  /** The judge's name in the report. */
  readonly name: string;
  /** The path of its reward log. */
  readonly path: string;
}

/** How judges are compared. */
export interface JudgesReportOptions extends Pick<MatchOptions, "labelOf"> {
  /** The largest difference of two scores that counts as agreement. Default 0.1. */
  readonly tolerance?: number;
  /** The score from which on a sample counts as right. Default 0.5. */
  readonly scoreThreshold?: number;
  /**
   * The label from which on a sample is right, for labels that are grades. Default: labels of true,
   * false, 1 and 0 say it themselves, and others are compared as scores only.
   */
  readonly labelThreshold?: number;
  /**
   * The field of the records, or a path in it, that splits the calibration: "dataSource",
   * "extra.model". Default: the data source, or the key of the solution where there is one source.
   */
  readonly by?: string;
  /** The most disagreements in the report. Default 10. */
  readonly mostDisagreements?: number;
}

const optionNames = {
  labelOf: true,
  tolerance: true,
  scoreThreshold: true,
  labelThreshold: true,
  by: true,
  mostDisagreements: true,
} as const satisfies Readonly<Record<keyof JudgesReportOptions, true>>;

/** Judges beside each other. */
export interface JudgesReport {
  /** The number of samples that any of the logs has. */
  readonly samples: number;
  /** The number of samples with a label. */
  readonly labelled: number;
  /** The largest difference of two scores that counts as agreement. */
  readonly tolerance: number;
  /** Each judge by itself. */
  readonly judges: readonly JudgeFigures[];
  /** Each two judges, and each judge with labels, as "label". */
  readonly agreements: readonly JudgeAgreement[];
  /** Each judge against labels that say which samples are right; empty without such labels. */
  readonly calibrations: readonly JudgeCalibration[];
  /** The field that splits the calibrations; null: they are not split. */
  readonly by: string | null;
  /** Samples with two scores that differ by more than the tolerance. */
  readonly disagreements: {
    /** The number of such samples. */
    readonly total: number;
    /** Samples with the largest differences first. */
    readonly shown: readonly JudgeDisagreement[];
  };
}

/** One judge by itself. */
export interface JudgeFigures {
  /** The judge. */
  readonly name: string;
  /** The number of samples in its log. */
  readonly samples: number;
  /** The number of samples without a score. */
  readonly invalid: number;
  /** The mean of its scores; null without one. */
  readonly meanScore: number | null;
}

/** How much two judges agree, or a judge and the labels. */
export interface JudgeAgreement extends PairAgreement {
  /** A judge. */
  readonly first: string;
  /** Another judge, or "label". */
  readonly second: string;
}

/** One judge against labels. */
export interface JudgeCalibration extends Calibration {
  /** The judge. */
  readonly name: string;
  /** The number of samples with a label. */
  readonly labelled: number;
  /** Samples with a label and without a score, which count in no rate. */
  readonly invalid: number;
  /** Null where all labels are alike. */
  readonly separation: Separation | null;
  /** The calibration of each source; empty if there is one source. */
  readonly sources: readonly (Calibration & {
    /** The value of the field `by`. */
    readonly source: string;
    /** The number of samples with a label. */
    readonly labelled: number;
    /** Samples with a label and without a score. */
    readonly invalid: number;
  })[];
}

/** A sample with scores that differ. */
export interface JudgeDisagreement {
  /** The sample's place in its input. */
  readonly index: number;
  /** The sample by its content. */
  readonly sample: string;
  /** The scores by judge; null: none. */
  readonly scores: Readonly<Record<string, number | null>>;
  /** The largest difference of two scores. */
  readonly difference: number;
  /** Null without one. */
  readonly label: SampleLabel | null;
}

/** The most sources of the default field that split a calibration. */
const mostSources = 50;

/**
 * Compares judges by their logs. Rejects as readRewardLog, and with RewardLoopOptionError for an
 * option that there is not, and a field that no record has.
 */
export async function judgesReport(
  logs: readonly JudgeLog[],
  options: JudgesReportOptions = {},
): Promise<JudgesReport> {
  checkKeys("judgesReport", options, Object.keys(optionNames));
  const { tolerance = 0.1, scoreThreshold = 0.5, labelThreshold, mostDisagreements = 10 } = options;
  const fields = options.by === undefined ? ["dataSource", "solution"] : [options.by];
  const paths = logs.map(({ path }) => path);
  const samples = await matchedScores(paths, { labelOf: options.labelOf, by: fields });
  const split = splitOf(samples, fields, options.by !== undefined);
  const labels = samples.flatMap(({ label }) => label ?? []);
  const isRight = rightBy(labels, labelThreshold);
  const differing = samples
    .map((one) => ({ one, difference: differenceOf(one, tolerance) }))
    .filter(({ difference }) => difference > 0)
    .toSorted((a, b) => b.difference - a.difference || a.one.index - b.one.index);
  return {
    samples: samples.length,
    labelled: labels.length,
    tolerance,
    judges: logs.map(({ name }, log) => figuresOf(name, log, samples)),
    agreements: agreementsOf(logs, samples, tolerance),
    calibrations:
      isRight === undefined || labels.length === 0
        ? []
        : logs.map(({ name }, log) => ({
            name,
            ...calibratedBy(samples, log, { threshold: scoreThreshold, isRight, split }),
          })),
    by: split?.by ?? null,
    disagreements: {
      total: differing.length,
      shown: differing.slice(0, mostDisagreements).map(({ one, difference }) => ({
        index: one.index,
        sample: one.sample,
        scores: Object.fromEntries(logs.map(({ name }, log) => [name, one.scores[log] ?? null])),
        difference,
        label: one.label ?? null,
      })),
    },
  };
}

interface Split {
  /** The field. */
  readonly by: string;
  readonly sourceOf: (sample: MatchedScores) => string;
}

/** Returns how the calibrations are split; undefined: they are not. */
function splitOf(
  samples: readonly MatchedScores[],
  fields: readonly string[],
  isAsked: boolean,
): Split | undefined {
  for (const [at, by] of fields.entries()) {
    const values = new Set(samples.flatMap(({ sources }) => sources[at] ?? []));
    if (isAsked && values.size === 0 && samples.length > 0) {
      throw new RewardLoopOptionError("by", "a field of the records in the logs", by);
    }
    const isSplit = isAsked || (values.size > 1 && values.size <= mostSources);
    if (isSplit) return { by, sourceOf: ({ sources }) => sources[at] ?? "" };
  }
  return undefined;
}

type IsRight = (label: SampleLabel) => boolean;

/** Undefined: the labels are grades, and nothing says which of them are right. */
function rightBy(
  labels: readonly SampleLabel[],
  labelThreshold: number | undefined,
): IsRight | undefined {
  if (labelThreshold !== undefined) return (label) => Number(label) >= labelThreshold;
  const isBinary = labels.every((label) => Number(label) === 0 || Number(label) === 1);
  return isBinary ? (label) => Number(label) === 1 : undefined;
}

function figuresOf(name: string, log: number, samples: readonly MatchedScores[]): JudgeFigures {
  const own = samples.flatMap(({ scores }) => (scores[log] === undefined ? [] : [scores[log]]));
  const scores = own.filter((score) => score !== null);
  return {
    name,
    samples: own.length,
    invalid: own.length - scores.length,
    meanScore:
      scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length,
  };
}

function agreementsOf(
  logs: readonly JudgeLog[],
  samples: readonly MatchedScores[],
  tolerance: number,
): JudgeAgreement[] {
  const hasLabels = samples.some(({ label }) => label !== undefined);
  const raters = [
    ...logs.map(({ name }, log) => ({ name, scoreOf: ({ scores }: MatchedScores) => scores[log] })),
    ...(hasLabels ? [{ name: "label", scoreOf: labelScore }] : []),
  ];
  return raters.flatMap((first, place) =>
    raters.slice(place + 1).map((second) => {
      const pairs = samples.flatMap((one): ScorePair[] => {
        const [a, b] = [first.scoreOf(one) ?? null, second.scoreOf(one) ?? null];
        return a === null || b === null ? [] : [[a, b]];
      });
      return { first: first.name, second: second.name, ...agreementOf(pairs, tolerance) };
    }),
  );
}

function labelScore({ label }: MatchedScores): number | undefined {
  return label === undefined ? undefined : Number(label);
}

interface CalibrationRules {
  readonly threshold: number;
  readonly isRight: IsRight;
  readonly split: Split | undefined;
}

function calibratedBy(
  samples: readonly MatchedScores[],
  log: number,
  { threshold, isRight, split }: CalibrationRules,
): Omit<JudgeCalibration, "name"> {
  const labelled = samples.filter(
    ({ label, scores }) => label !== undefined && scores[log] !== undefined,
  );
  const figures = (own: readonly MatchedScores[]): Omit<JudgeCalibration, "name" | "sources"> => {
    const scored = own.flatMap(({ label, scores }): LabelledScore[] => {
      const score = scores[log] ?? null;
      return label === undefined || score === null ? [] : [{ score, label: isRight(label) }];
    });
    return {
      labelled: own.length,
      invalid: own.length - scored.length,
      ...calibrationAt(scored, threshold),
      separation: separationOf(scored),
    };
  };
  const bySource = split === undefined ? [] : Map.groupBy(labelled, split.sourceOf);
  const sources = [...bySource].map(([source, own]) => {
    const { separation: _, ...rest } = figures(own);
    return { source, ...rest };
  });
  return { ...figures(labelled), sources };
}

/** 0 where no two scores differ by more than the tolerance. */
function differenceOf({ scores }: MatchedScores, tolerance: number): number {
  const own = scores.filter((score) => typeof score === "number");
  const [least, most] = [Math.min(...own), Math.max(...own)];
  return own.length < 2 || isWithin([least, most], tolerance) ? 0 : most - least;
}
