/**
 * Agents whose runs have several outputs: only the last of each run is scored and compared, and its
 * advantage is that of all of them (verl `compute_advantage_for_multi_trajectories`).
 */

import { gatherRows } from "@rayling/data-proto";
import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import { matrixOf } from "../matrix.ts";
import {
  type AdvantageBatch,
  type AdvantageEstimator,
  type Advantages,
  type AdvantageSettings,
  advantagesOf,
  broadcastInto,
  groupIdsOf,
  newColumn,
  rowsOf,
} from "./batch.ts";

export interface Sessions {
  readonly sessions: readonly (string | number)[];
  readonly outputIndex: readonly number[] | undefined;
}

/**
 * The estimate of the rows with the highest index of their session; its value at their first token
 * that counts, at every token of the session that does.
 *
 * @throws TrainerInputError
 */
export function ofLastOutputs(
  estimate: AdvantageEstimator,
  batch: AdvantageBatch,
  { sessions, outputIndex }: Sessions,
  settings: AdvantageSettings,
): Advantages {
  const rows = rowsOf(batch);
  const groups = groupIdsOf(batch, rows);
  if (sessions.length !== groups.length || outputIndex?.length !== groups.length) {
    throw new TrainerInputError(
      "sessions",
      `sessions and outputIndex must have one entry for each of ${groups.length} rows; they have ${sessions.length} and ${outputIndex?.length ?? "none"}`,
    );
  }
  const keys = groups.map((group, row) => JSON.stringify([group, sessions[row]]));
  const lastOf = new Map<string, number>();
  for (const [row, key] of keys.entries()) {
    const last = lastOf.get(key);
    if (last === undefined || (outputIndex[row] ?? NaN) > (outputIndex[last] ?? NaN)) {
      lastOf.set(key, row);
    }
  }
  const last = [...lastOf.values()];
  const own = {
    tokenLevelRewards: gatherRows(batch.tokenLevelRewards, last),
    responseMask: gatherRows(batch.responseMask, last),
    groups: last.map((row) => present(groups[row], `the group of row ${row}`)),
    valid: last.map(rows.isValid),
  };
  const advantages = matrixOf("advantages", estimate(own, settings).advantages);
  const mask = matrixOf("responseMask", own.responseMask);
  const values = new Map(
    [...lastOf.keys()].map((key, row) => {
      const from = row * mask.columns;
      const first = mask.data.subarray(from, from + mask.columns).findIndex((one) => one !== 0);
      return [key, first < 0 ? 0 : (advantages.data[from + first] ?? NaN)];
    }),
  );
  const ofRows = Float64Array.from(keys, (key) => values.get(key) ?? NaN);
  const column = newColumn(rows);
  broadcastInto(column, ofRows, rows.runs);
  return advantagesOf(rows, column);
}
