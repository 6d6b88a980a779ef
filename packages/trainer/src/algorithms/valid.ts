/** Rows whose score is invalid: masked, so that nothing is learnt from them and nothing is divided by them. */

import { TrainerInputError } from "../errors.ts";
import type { Matrix } from "./matrix.ts";

/** The mask with nothing of rows that are not valid; by default, all are. @throws TrainerInputError where there is not one entry for each row */
export function validMask(mask: Matrix, valid: readonly boolean[] | undefined): Matrix {
  if (valid === undefined) return mask;
  if (valid.length !== mask.rows) {
    throw new TrainerInputError(
      "valid",
      `valid must have one entry for each of ${mask.rows} rows; it has ${valid.length}`,
    );
  }
  const data = mask.data.slice();
  for (const [row, isValid] of valid.entries()) {
    if (!isValid) data.fill(0, row * mask.columns, (row + 1) * mask.columns);
  }
  return { ...mask, data };
}
