/**
 * Whether a training did good: its last validation against the one before its first step, or, where
 * a checkpoint does not have that, against the one of the checkpoint. Pure.
 */
import type { TrainingReport } from "@rayling/trainer";
import { coreMetricText, coreMetricValue } from "@rayling/trainer/run";

/** The change of one metric by a training. */
export interface Verdict {
  /** The metric. */
  readonly name: string;
  readonly isWorse: boolean;
  readonly text: string;
}

/** Returns a verdict for each core metric of the last validation that has a value from before. */
export function verdictsOf({
  validation,
  initialValidation,
  initialValidationStep = 0,
}: Pick<TrainingReport, "validation" | "initialValidation" | "initialValidationStep">): Verdict[] {
  if (validation === undefined || validation === initialValidation) return [];
  const compared = Object.entries(validation).flatMap(([name, after]) => {
    const before = initialValidation?.[name];
    const isCore = name.startsWith("val-core/") && Number.isFinite(after);
    return isCore && before !== undefined && Number.isFinite(before)
      ? [{ name, before, after }]
      : [];
  });
  const names = Object.keys(validation);
  return compared.map(({ name, before, after }) => {
    const [was, is] = [before, after].map((value) => coreMetricValue(name, value));
    const figures = `${coreMetricText(name, names)} ${was} before, ${is} after`;
    const than =
      initialValidationStep === 0 ? "before training" : `at step ${initialValidationStep}`;
    return { name, isWorse: after < before, text: `${change(before, after)} ${than}: ${figures}` };
  });
}

function change(before: number, after: number): string {
  if (after === before) return "as";
  return after < before ? "worse than" : "better than";
}
