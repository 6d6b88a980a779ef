/** Agreement and calibration against scikit-learn's own figures (scikit-learn.py makes them). */

import { readFileSync } from "node:fs";
import {
  agreementOf,
  calibrationAt,
  cohenKappa,
  quadraticKappa,
  separationOf,
} from "@rayling/reward-loop";
import type { Calibration, ScorePair, Separation } from "@rayling/reward-loop";
import { describe, expect, test } from "vitest";

interface Raters {
  readonly name: string;
  readonly first: readonly number[];
  readonly second: readonly number[];
  readonly kappa: number | null;
  readonly quadraticKappa: number | null;
  readonly exact: number;
  readonly meanDifference: number;
}

interface Labelled extends Calibration {
  readonly name: string;
  readonly scores: readonly number[];
  readonly labels: readonly boolean[];
  readonly separation: Separation | null;
}

const golden = JSON.parse(readFileSync(new URL("scikit-learn.json", import.meta.url), "utf8")) as {
  readonly raters: readonly Raters[];
  readonly labelled: readonly Labelled[];
};

/** Equal but for the last digits. */
function close(value: number | null): unknown {
  return value === null ? null : (expect.closeTo(value, 10) as unknown);
}

describe("two raters", () => {
  test.each(golden.raters)("$name", ({ first, second, ...wanted }) => {
    const pairs = first.map((one, at): ScorePair => [one, second[at] ?? expect.unreachable()]);
    expect(cohenKappa(pairs) ?? null).toEqual(close(wanted.kappa));
    expect(quadraticKappa(pairs) ?? null).toEqual(close(wanted.quadraticKappa));
    const isGraded = new Set([...first, ...second]).size > 2;
    expect(agreementOf(pairs, 0)).toEqual({
      samples: first.length,
      exact: close(wanted.exact),
      within: close(wanted.exact),
      kappa: close(wanted.kappa),
      weightedKappa: isGraded ? close(wanted.quadraticKappa) : null,
      meanDifference: close(wanted.meanDifference),
    });
  });

  test("a rater that shifts or stretches all grades alike changes no weighted kappa", () => {
    const pairs: ScorePair[] = [
      [1, 2],
      [2, 2],
      [3, 5],
      [5, 4],
    ];
    const moved = pairs.map(([a, b]): ScorePair => [a / 10 - 3, b / 10 - 3]);
    expect(quadraticKappa(moved)).toBeCloseTo(quadraticKappa(pairs) ?? Number.NaN, 12);
  });

  test.each([0.1, 0.5, 0.7, 0, -3])("one score of both raters (%d) has no kappa", (score) => {
    const pairs = Array.from({ length: 3 }, (): ScorePair => [score, score]);
    expect([quadraticKappa(pairs), cohenKappa(pairs)]).toEqual([undefined, undefined]);
  });

  test("scores that differ by the tolerance are within it, whatever their last bit", () => {
    const pairs: ScorePair[] = [
      [0.8, 0.7],
      [0.3, 0.2],
      [0.1, 0.4],
    ];
    expect(agreementOf(pairs, 0.1)).toMatchObject({ exact: 0, within: 2 / 3 });
  });

  test("no samples have no figures", () => {
    expect(agreementOf([], 0.1)).toEqual({
      samples: 0,
      exact: null,
      within: null,
      kappa: null,
      weightedKappa: null,
      meanDifference: null,
    });
  });
});

describe("scores against labels", () => {
  test.each(golden.labelled)("$name", (one) => {
    const { name, scores, labels, separation, ...wanted } = one;
    expect(scores, name).toHaveLength(labels.length);
    const labelled = scores.map((score, at) => ({
      score,
      label: labels[at] ?? expect.unreachable(),
    }));
    const rates = ["accuracy", "precision", "recall", "specificity", "f1"] as const;
    expect(calibrationAt(labelled, wanted.threshold)).toEqual({
      ...wanted,
      ...Object.fromEntries(rates.map((rate) => [rate, close(wanted[rate])])),
    });
    expect(separationOf(labelled)).toEqual(
      separation && { ...separation, rocAuc: close(separation.rocAuc) },
    );
  });
});
