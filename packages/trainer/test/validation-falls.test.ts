/** Validations that are below the first one of a run: one warning for each fall. */

import { expect, test } from "vitest";
import { ValidationFalls } from "../src/validation/validation-falls.ts";

const gsm8k = "val-core/gsm8k/acc/mean@1";
const maths = "val-core/maths/reward/mean@4";

test("a fall is told once, and again after it was made good", () => {
  const falls = new ValidationFalls();
  falls.begin({ [gsm8k]: 0.5 }, 0);
  const isTold = [0.5, 0.6, 0.4, 0.3, 0.5, 0.4].map(
    (score, at) => falls.warningOf({ [gsm8k]: score }, at + 1) !== undefined,
  );
  expect(isTold).toEqual([false, false, true, false, false, true]);
});

test("names what fell, each data source by itself", () => {
  const falls = new ValidationFalls();
  falls.begin({ [gsm8k]: 0.5, [maths]: 0.25, "val-aux/gsm8k/reward/mean@1": 1 }, 20);
  const both = { [gsm8k]: 0.4, [maths]: 0.25, "val-aux/gsm8k/reward/mean@1": 0 };
  expect(falls.warningOf(both, 25)).toMatch(
    /^the validation of step 25 is below that of step 20: accuracy on gsm8k is 40\.0 % and was 50\.0 %;/,
  );
  const other = falls.warningOf({ ...both, [maths]: 0.2 }, 30);
  expect(other).toContain("reward mean@4 on maths is 0.2000 and was 0.2500");
  expect(other).not.toContain("gsm8k");
});

test("there is nothing to compare with before the first one, nor where a source has no score", () => {
  const falls = new ValidationFalls();
  expect(falls.warningOf({ [gsm8k]: 0.1 }, 1)).toBeUndefined();
  falls.begin({ [gsm8k]: Number.NaN }, 0);
  expect(falls.warningOf({ [gsm8k]: 0.1, [maths]: 0.1 }, 1)).toBeUndefined();
});
