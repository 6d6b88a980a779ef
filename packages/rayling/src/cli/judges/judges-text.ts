/**
 * A comparison of judges as tables for people.
 */

import type {
  Calibration,
  JudgeAgreement,
  JudgeCalibration,
  JudgesReport,
  Separation,
} from "@rayling/reward-loop";
import { heading } from "../output/formats.ts";
import { commandText } from "../output/launcher.ts";
import { grouped } from "../output/numbers.ts";
import { plain } from "../output/output.ts";
import { columnsOf, tableLines } from "../output/table.ts";

/** @param files the logs, to open the disagreements with; empty: these are not listed */
export function judgesLines(report: JudgesReport, files: readonly string[]): string[] {
  const { judges, agreements, calibrations, by } = report;
  const sources = calibrations.flatMap((one) => sourceRows(one, by ?? "source"));
  return [
    ...titled(
      "judges",
      judges.map(({ name, samples, invalid, meanScore }) => ({
        judge: name,
        samples: grouped(samples),
        invalid: grouped(invalid),
        "mean score": figure(meanScore),
      })),
    ),
    ...titled(
      "agreement",
      agreements.map((one) => agreementRow(one, report.tolerance)),
    ),
    ...titled("against labels", calibrations.map(calibrationRow)),
    ...titled(`against labels, by ${plain(by ?? "")}`, sources),
    ...(files.length < 2 ? [] : disagreementLines(report, files)),
  ].slice(1);
}

function titled(title: string, rows: readonly object[]): string[] {
  return rows.length === 0 ? [] : ["", heading(title), ...tableLines(rows, columnsOf(rows))];
}

function agreementRow(one: JudgeAgreement, tolerance: number): object {
  const { first, second, samples, exact, within, kappa, weightedKappa, meanDifference } = one;
  return {
    "first and second": `${first}, ${second}`,
    samples: grouped(samples),
    exact: figure(exact),
    [`within ${tolerance}`]: figure(within),
    kappa: figure(kappa),
    "weighted kappa": figure(weightedKappa),
    "second - first": figure(meanDifference),
  };
}

function calibrationRow({ name, labelled, invalid, separation, ...one }: JudgeCalibration): object {
  return {
    judge: name,
    labelled: grouped(labelled),
    invalid: grouped(invalid),
    "right from": String(one.threshold),
    ...rates(one),
    ...confusion(one),
    ...separated(separation),
  };
}

function sourceRows({ name, sources }: JudgeCalibration, by: string): object[] {
  return sources.map(({ source, labelled, invalid, ...one }) => ({
    [by]: source,
    judge: name,
    labelled: grouped(labelled),
    invalid: grouped(invalid),
    ...rates(one),
    ...confusion(one),
  }));
}

function rates({ accuracy, precision, recall, f1 }: Calibration): object {
  return {
    accuracy: figure(accuracy),
    precision: figure(precision),
    recall: figure(recall),
    F1: figure(f1),
  };
}

function confusion(one: Calibration): object {
  const { truePositives, falsePositives, falseNegatives, trueNegatives } = one;
  return {
    TP: grouped(truePositives),
    FP: grouped(falsePositives),
    FN: grouped(falseNegatives),
    TN: grouped(trueNegatives),
  };
}

function separated(separation: Separation | null): object {
  return {
    "ROC AUC": figure(separation?.rocAuc ?? null),
    "best threshold": separation?.bestThreshold?.toPrecision(4).replace(/\.?0+$/, "") ?? "-",
  };
}

function disagreementLines(
  { disagreements: { total, shown }, samples, judges, tolerance }: JudgesReport,
  files: readonly string[],
): string[] {
  const rows = shown.map(({ index, scores, label }) => ({
    sample: String(index),
    ...Object.fromEntries(judges.map(({ name }) => [name, score(scores[name] ?? null)])),
    ...(label === null ? {} : { label: String(label) }),
  }));
  const count = `${grouped(total)} of ${grouped(samples)} samples have scores that differ by more than ${tolerance}`;
  const open = commandText(["rewards", "view", ...files]);
  return [
    ...titled("disagreements", rows),
    "",
    total === 0 ? count : `${count}; to read them: ${open}`,
  ];
}

function score(value: number | null): string {
  return value === null ? "-" : String(Number(value.toPrecision(6)));
}

function figure(value: number | null): string {
  return value?.toFixed(4) ?? "-";
}
