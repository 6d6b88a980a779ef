/**
 * The groups of an input before anything of it is scored: how many answers each prompt has, and
 * whether a stream that waits for all of them holds no more samples than it may.
 */

import { mostHeldInStream } from "@rayling/reward-loop";
import { CliError } from "../cli-error.ts";
import { grouped } from "../output/numbers.ts";
import type { SolutionSample } from "./solutions.ts";

/** @returns how many answers the group of a sample has */
export type GroupSizes = (sample: SolutionSample) => number;

/**
 * Reads the samples once; a number is kept of each, and the name of each group. Throws CliError 2
 * where answers to one prompt stand so far apart that more than 65,536 samples would wait for
 * others.
 *
 * @param path of the input, for the error
 */
export async function groupSizesOf(
  path: string,
  samples: AsyncIterable<SolutionSample>,
): Promise<GroupSizes> {
  const places = new Map<string, { size: number; last: number }>();
  /** For each sample the number of its group; -1: it is alone. */
  const groups: number[] = [];
  const numbers = new Map<string, number>();
  for await (const { context } of samples) {
    const name = context?.group;
    const at = groups.length;
    if (name === undefined) {
      groups.push(-1);
      continue;
    }
    const place = places.get(name) ?? { size: 0, last: at };
    places.set(name, { size: place.size + 1, last: at });
    numbers.set(name, numbers.get(name) ?? numbers.size);
    groups.push(numbers.get(name) ?? -1);
  }
  refuseScattered(path, groups, [...places.values()]);
  return ({ context }) => places.get(context?.group ?? "")?.size ?? 1;
}

/** @param places of groups, in order of their numbers */
function refuseScattered(
  path: string,
  groups: readonly number[],
  places: readonly { readonly size: number; readonly last: number }[],
): void {
  let held = 0;
  for (const [at, group] of groups.entries()) {
    const { size, last } = places[group] ?? { size: 0, last: -1 };
    if (group === -1) continue;
    held += last === at ? 1 - size : 1;
    if (held <= mostHeldInStream) continue;
    const most = grouped(mostHeldInStream);
    throw new CliError(
      2,
      `${path}: answers to one prompt stand too far apart to be scored together: up to sample ${grouped(at)} more than ${most} wait for others. Sort the file so that they stand together.`,
    );
  }
}
