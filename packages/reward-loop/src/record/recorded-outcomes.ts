/**
 * Outcomes of an earlier run by what their samples say, out of its reward log: what a run is replayed from.
 *
 * Samples that say the same may have had different outcomes: they are given in the order of their indices, and from the first one again when all were given. Of several lines for one index
 * the one that counts is given. Parts of an outcome (several rewards, stages of a cascade) come back with it.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "../outcome.ts";
import { isOfPart, readRewardLog } from "./reward-log.ts";
import { outcomeOf } from "./reward-record.ts";
import type { RewardRecord } from "./reward-record.ts";
import { olderSampleKeys, sampleKey } from "./sample-key.ts";

interface Known {
  readonly byIndex: Map<number, SampleOutcome>;
  /** By index, when somebody has asked. */
  inOrder: readonly SampleOutcome[] | undefined;
  given: number;
}

export class RecordedOutcomes {
  readonly #known: Map<string, Known> = new Map();

  /** Rejects with JsonlError, or RewardLogError for a line that is no record. */
  static async read(path: string): Promise<RecordedOutcomes> {
    const outcomes = new RecordedOutcomes();
    let parts: RewardRecord[] = [];
    for await (const record of readRewardLog(path)) {
      if (isOfPart(record)) {
        parts.push(record);
        continue;
      }
      // Lines of other outcomes may stand between an outcome and its parts.
      const isOwn = (part: RewardRecord): boolean =>
        part.index === record.index && part.sample === record.sample;
      outcomes.#add(record, parts.filter(isOwn));
      parts = parts.filter((part) => !isOwn(part));
    }
    return outcomes;
  }

  /** Undefined: the log does not know it. */
  next(sample: RewardSample): SampleOutcome | undefined {
    const known = this.#find(sample);
    if (known === undefined) return undefined;
    known.inOrder ??= [...known.byIndex].toSorted(([a], [b]) => a - b).map(([, one]) => one);
    return known.inOrder[known.given++ % known.inOrder.length];
  }

  #find(sample: RewardSample): Known | undefined {
    const known = this.#known.get(sampleKey(sample));
    if (known !== undefined) return known;
    const older = olderSampleKeys(sample).find((key) => this.#known.has(key));
    return older === undefined ? undefined : this.#known.get(older);
  }

  #add(record: RewardRecord, parts: readonly RewardRecord[]): void {
    const { sample, index } = record;
    let known = this.#known.get(sample);
    if (known === undefined) {
      known = { byIndex: new Map(), inOrder: undefined, given: 0 };
      this.#known.set(sample, known);
    }
    const before = known.byIndex.get(index);
    if (before?.valid !== true || record.valid) {
      known.byIndex.set(index, withParts(outcomeOf(record), parts, ""));
    }
  }
}

/** @param within what the names of its parts begin with: "" or "correct/" */
function withParts(
  outcome: SampleOutcome,
  records: readonly RewardRecord[],
  within: string,
): SampleOutcome {
  const components = records.flatMap((record): [string, SampleOutcome][] => {
    const { component } = record;
    const name = component?.startsWith(within) === true ? component.slice(within.length) : "";
    if (name === "" || name.includes("/")) return [];
    return [[name, withParts(outcomeOf(record), records, `${within}${name}/`)]];
  });
  if (components.length === 0) return outcome;
  return { ...outcome, components: Object.fromEntries(components) };
}
