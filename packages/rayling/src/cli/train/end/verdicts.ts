/** Whether a training did good: its last validation against the one before it. Pure. */
import type { TrainingReport } from "@rayling/trainer";

/** The change of one metric by a training. */
export interface Verdict {
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
  return compared.map(({ name, before, after }) => {
    const whose = compared.length === 1 ? "" : `${name} is `;
    const [was, is] = [before, after].map((value) => figure(name, value));
    const figures = `${was} before, ${is} after`;
    return { isWorse: after < before, text: `${whose}${change(before, after)}: ${figures}` };
  });
}

function change(before: number, after: number): string {
  if (after === before) return "as before training";
  return after < before ? "worse than before training" : "better than before training";
}

/** An accuracy is a share; a reward has units of its own. */
function figure(name: string, value: number): string {
  return name.includes("/acc/") ? `${(100 * value).toFixed(1)} %` : value.toFixed(4);
}
