/**
 * Rollouts as files to look through, as verl dumps them (`trainer.rollout_data_dir`,
 * `validation_data_dir`): `{dir}/{step}.jsonl`, a line for each row.
 */

import { join } from "node:path";
import { openJsonlWriter } from "@rayling/data-proto";
import { isTypedArray } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../errors.ts";
import { makeFolder } from "../values/make-folder.ts";
import { workThenClose } from "../values/work-then-close.ts";

/** Columns of one step, all of the same length. */
export interface RolloutDump {
  /** Number of the step, from 1. */
  readonly step: number;
  /** Prompts. */
  readonly inputs: readonly string[];
  /** Responses. */
  readonly outputs: readonly string[];
  /** Ground truths; null for a row without one. */
  readonly gts: readonly unknown[];
  /** Scores; one that is not a finite number is written as null. */
  readonly scores: readonly number[];
  /**
   * Further columns by name. One of another length than the rest is left out, as in verl. One with
   * the name of a column above does not take its place, as it does in verl: it is written as
   * `extra_output`. A further `score`, that of the function alone, is left out.
   */
  readonly extras?: Readonly<Record<string, readonly unknown[]>>;
}

const ownNames: ReadonlySet<string> = new Set(["input", "output", "gts", "score", "step"]);

/**
 * Writes the file anew, so that a step that is done again after a resume has its rows once; returns
 * its path. Makes the folder.
 *
 * Rejects with TrainerInputError for columns that do not fit each other, JsonlError for a file that
 * cannot be written or a value that JSON cannot carry.
 */
export async function dumpRollouts(directory: string, rollouts: RolloutDump): Promise<string> {
  const { step, inputs, outputs, gts, scores, extras = {} } = rollouts;
  for (const [name, column] of Object.entries({ outputs, gts, scores })) {
    if (column.length === inputs.length) continue;
    const message = `rollouts of step ${step}: ${name} has ${column.length} rows, inputs ${inputs.length}`;
    throw new TrainerInputError(name, message);
  }
  await makeFolder(directory);
  const further = Object.entries(extras)
    .filter(([name, column]) => column.length === inputs.length && name !== "score")
    .map(([name, column]) => [ownNames.has(name) ? `extra_${name}` : name, column] as const);
  const path = join(directory, `${step}.jsonl`);
  const writer = await openJsonlWriter(path);
  await workThenClose(writer, async () => {
    for (const [row, input] of inputs.entries()) {
      await writer.write({
        input,
        output: outputs[row],
        gts: jsonOf(gts[row]),
        score: jsonOf(scores[row]),
        step,
        ...Object.fromEntries(further.map(([name, column]) => [name, jsonOf(column[row])])),
      });
    }
  });
  return path;
}

/**
 * Returns any extra info of a score function as JSON: a dump that fails would end the training. A
 * number that is not finite becomes null, a bigint a text, a map an object, a set or typed array a
 * list. A value that JSON cannot write becomes null, and so does one inside itself.
 */
function jsonOf(value: unknown, within: readonly object[] = []): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "bigint") return String(value);
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value !== "object" || value === null || within.includes(value)) return null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  const inside = [...within, value];
  const listed = (list: Iterable<unknown>): unknown[] =>
    Array.from(list, (one) => jsonOf(one, inside));
  if (Array.isArray(value) || value instanceof Set) return listed(value);
  if (value instanceof DataView) return null;
  if (isTypedArray(value)) return listed(value);
  const entries: Iterable<readonly [unknown, unknown]> =
    value instanceof Map ? value : Object.entries(value);
  return Object.fromEntries(
    Array.from(entries, ([key, one]) => [String(key), jsonOf(one, inside)]),
  );
}
