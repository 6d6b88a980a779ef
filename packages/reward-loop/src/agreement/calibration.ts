/**
 * A judge's scores against labels that say which samples are right: counts, rates, and the
 * threshold at which the scores separate right from wrong best.
 */

/** A score, and whether the label says that the sample is right. */
export interface LabelledScore {
  /** The judge's score. */
  readonly score: number;
  /** Whether the sample is right by its label. */
  readonly label: boolean;
}

/** Counts of samples by label, and by whether their score reaches the threshold. */
export interface ConfusionMatrix {
  /** Right samples at or above the threshold. */
  readonly truePositives: number;
  /** Wrong samples at or above the threshold. */
  readonly falsePositives: number;
  /** Right samples below the threshold. */
  readonly falseNegatives: number;
  /** Wrong samples below the threshold. */
  readonly trueNegatives: number;
}

/** A judge against labels, at one threshold. Rates are from 0 to 1; null where they divide by 0. */
export interface Calibration extends ConfusionMatrix {
  /** The score from which on a sample counts as right. */
  readonly threshold: number;
  /** The share of samples that the judge and the label agree on. */
  readonly accuracy: number | null;
  /** The share of right samples among those at or above the threshold. */
  readonly precision: number | null;
  /** The share of samples at or above the threshold among the right ones. */
  readonly recall: number | null;
  /** The share of samples below the threshold among the wrong ones. */
  readonly specificity: number | null;
  /** The harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN). */
  readonly f1: number | null;
}

/**
 * Counts scores by their labels at a threshold.
 *
 * Source of the formulas: scikit-learn's `confusion_matrix`, `accuracy_score`,
 * `precision_recall_fscore_support`, with null in place of its warnings.
 */
export function calibrationAt(scores: readonly LabelledScore[], threshold: number): Calibration {
  const count = (isRight: boolean, isReached: boolean): number =>
    scores.filter(({ score, label }) => label === isRight && score >= threshold === isReached)
      .length;
  const truePositives = count(true, true);
  const falsePositives = count(false, true);
  const falseNegatives = count(true, false);
  const trueNegatives = count(false, false);
  return {
    threshold,
    truePositives,
    falsePositives,
    falseNegatives,
    trueNegatives,
    accuracy: ratio(truePositives + trueNegatives, scores.length),
    precision: ratio(truePositives, truePositives + falsePositives),
    recall: ratio(truePositives, truePositives + falseNegatives),
    specificity: ratio(trueNegatives, trueNegatives + falsePositives),
    f1: ratio(2 * truePositives, 2 * truePositives + falsePositives + falseNegatives),
  };
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}

/** How well scores separate right from wrong samples at any threshold. */
export interface Separation {
  /**
   * The area under the ROC curve: the chance that a right sample scores higher than a wrong one,
   * where a tie counts as half.
   */
  readonly rocAuc: number;
  /**
   * The threshold with the largest recall + specificity - 1 (Youden's index), the highest of
   * several; null if no threshold is better than chance.
   */
  readonly bestThreshold: number | null;
}

/**
 * Returns null where all labels are alike.
 *
 * Source: scikit-learn's `roc_auc_score` and `roc_curve`; W. J. Youden, "Index for rating
 * diagnostic tests" (1950).
 */
export function separationOf(scores: readonly LabelledScore[]): Separation | null {
  const right = scores.filter(({ label }) => label).length;
  const wrong = scores.length - right;
  if (right === 0 || wrong === 0) return null;
  const sorted = scores.toSorted((a, b) => b.score - a.score);
  const best: { index: number; threshold: number | null } = { index: 0, threshold: null };
  let [truePositives, falsePositives, doubledArea] = [0, 0, 0];
  for (const [score, tied] of Map.groupBy(sorted, (one) => one.score)) {
    const tiedRight = tied.filter(({ label }) => label).length;
    const tiedWrong = tied.length - tiedRight;
    doubledArea += tiedWrong * (2 * truePositives + tiedRight);
    truePositives += tiedRight;
    falsePositives += tiedWrong;
    // Whole numbers compare without rounding: the index times right times wrong.
    const index = truePositives * wrong - falsePositives * right;
    if (index > best.index) Object.assign(best, { index, threshold: score });
  }
  return { rocAuc: doubledArea / (2 * right * wrong), bestThreshold: best.threshold };
}
