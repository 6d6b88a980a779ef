/**
 * Rows whose score is invalid: masked, so that nothing is learnt from them and nothing is divided
 * by them.
 */

import { TrainerInputError } from "../errors.ts";
import { countOf } from "./masked-sums.ts";
import type { Matrix, MatrixView } from "./matrix.ts";

/**
 * The mask with nothing of rows that are not valid; by default, all are. It is the given one where
 * nothing is taken away.
 *
 * @throws TrainerInputError where there is not one entry for each row
 */
export function validMask(mask: Matrix, valid: readonly boolean[] | undefined): Matrix;
export function validMask(mask: MatrixView, valid: readonly boolean[] | undefined): MatrixView;
export function validMask(mask: MatrixView, valid: readonly boolean[] | undefined): MatrixView {
  if (valid === undefined) return mask;
  if (valid.length !== mask.rows) {
    throw new TrainerInputError(
      "valid",
      `valid must have one entry for each of ${mask.rows} rows; it has ${valid.length}`,
    );
  }
  if (valid.every(Boolean)) return mask;
  const data = mask.data.slice();
  for (const [row, isValid] of valid.entries()) {
    if (!isValid) data.fill(0, row * mask.columns, (row + 1) * mask.columns);
  }
  return { ...mask, data };
}

/**
 * Whether a batch with rows that are not valid has no token left: then there is nothing to learn,
 * and nothing wrong with the input.
 *
 * @param mask of the valid rows
 */
export function leavesNoToken(mask: MatrixView, valid: readonly boolean[] | undefined): boolean {
  return valid?.includes(false) === true && countOf(mask) === 0;
}
