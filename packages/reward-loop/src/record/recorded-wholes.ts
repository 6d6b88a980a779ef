/** Outcomes of a reward log, each line of a whole with those of the parts that it was put together from (several rewards, stages of a cascade), and which of several for one index counts. */

import type { SampleOutcome } from "../outcome.ts";
import { isOfPart, readRewardLog } from "./reward-log.ts";
import { outcomeOf, takesPlaceOf } from "./reward-record.ts";
import type { RewardRecord } from "./reward-record.ts";

export interface RecordedWhole {
  readonly record: RewardRecord;
  readonly parts: readonly RewardRecord[];
  /** Of its lines and then of itself, from 0: as readRewardLog gives them. */
  readonly places: readonly number[];
}

interface PlacedPart {
  readonly part: RewardRecord;
  readonly place: number;
}

/** In their order. Rejects as readRewardLog. @param mayLack a file that is not there has none */
export async function* wholesOf(
  path: string,
  options: { readonly mayLack?: boolean } = {},
): AsyncGenerator<RecordedWhole, void, undefined> {
  let waiting: PlacedPart[] = [];
  let place = -1;
  for await (const record of readRewardLog(path, options)) {
    place += 1;
    if (isOfPart(record)) {
      waiting.push({ part: record, place });
      continue;
    }
    // Lines of other outcomes may stand between an outcome and its parts.
    const isOwn = ({ part }: PlacedPart): boolean =>
      part.index === record.index && part.sample === record.sample;
    const own = waiting.filter(isOwn);
    waiting = waiting.filter((one) => !isOwn(one));
    const places = [...own.map((one) => one.place), place];
    yield { record, parts: own.map(({ part }) => part), places };
  }
}

/** What counts of a log, by index. Rejects as readRewardLog. */
export async function countedWholes(
  path: string,
  options: { readonly mayLack?: boolean } = {},
): Promise<Map<number, RecordedWhole>> {
  const counted = new Map<number, RecordedWhole>();
  for await (const whole of wholesOf(path, options)) {
    const { index } = whole.record;
    if (takesPlaceOf(whole.record, counted.get(index)?.record)) counted.set(index, whole);
  }
  return counted;
}

/** What the loop gave when it was written. */
export function outcomeOfWhole({
  record,
  parts,
}: Pick<RecordedWhole, "record" | "parts">): SampleOutcome {
  return withParts(outcomeOf(record), parts, "");
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
