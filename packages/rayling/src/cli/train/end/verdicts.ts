/** Whether a training did good: its last validation against the one before it. Pure. */
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
}: Pick<TrainingReport, "validation" | "initialValidation">): Verdict[] {
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
    return { name, isWorse: after < before, text: `${change(before, after)}: ${figures}` };
  });
}

function change(before: number, after: number): string {
  if (after === before) return "as before training";
  return after < before ? "worse than before training" : "better than before training";
}
