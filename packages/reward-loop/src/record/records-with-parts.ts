/**
 * Outcomes of a reward log, each line of a whole with those of the parts that it was put together
 * from (several rewards, stages of a cascade), and which of several for one index counts.
 */

import type { SampleOutcome } from "../outcome.ts";
import { isOfPart, readRewardLog } from "./reward-log-file.ts";
import { givenOutcomeOf, outcomeOf, takesPlaceOf, withoutTexts } from "./reward-record.ts";
import type { RewardRecord } from "./reward-record.ts";

export interface RecordedWhole {
  readonly record: RewardRecord;
  readonly parts: readonly RewardRecord[];
  /**
   * Positions of its parts and then of itself among the records that readRewardLog gives, from 0.
   */
  readonly places: readonly number[];
}

interface PlacedPart {
  readonly part: RewardRecord;
  readonly place: number;
}

/**
 * Yields records in order, without prompts and responses. Rejects as readRewardLog.
 *
 * @param mayLack a missing file has none
 */
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
    // A part stands twice where a process was killed before it wrote the whole.
    const byName = new Map(waiting.filter(isOwn).map((one) => [one.part.component, one]));
    const own = [...byName.values()].toSorted((a, b) => a.place - b.place);
    waiting = waiting.filter((one) => !isOwn(one));
    const places = [...own.map((one) => one.place), place];
    yield { record: withoutTexts(record), parts: own.map(({ part }) => part), places };
  }
}

/** Reads the outcomes that count, by index. Rejects as readRewardLog. */
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

/**
 * Records that count, as they stand in the log, with those of parts before them where these are
 * asked for. Reads it twice. Rejects as readRewardLog.
 *
 * @param lines "whole": of outcomes as a whole; "counted": those of their parts, too
 */
export async function* countedRecords(
  path: string,
  lines: "whole" | "counted" = "whole",
): AsyncGenerator<RewardRecord, void, undefined> {
  const counted = await countedPlaces(path);
  let place = -1;
  for await (const record of readRewardLog(path)) {
    place += 1;
    if (counted.has(place) && (lines === "counted" || !isOfPart(record))) yield record;
  }
}

/** Returns the places of lines that count, without reading their texts. */
async function countedPlaces(path: string): Promise<ReadonlySet<number>> {
  type Counted = Pick<RewardRecord, "valid" | "sample">;
  const byIndex = new Map<number, { readonly one: Counted; readonly places: readonly number[] }>();
  for await (const { record, places } of wholesOf(path)) {
    const { index, valid, sample } = record;
    if (!takesPlaceOf(record, byIndex.get(index)?.one)) continue;
    byIndex.set(index, { one: { valid, sample }, places });
  }
  return new Set([...byIndex.values()].flatMap(({ places }) => places));
}

/** Makes it the outcome that the loop gave when it was written. */
export function outcomeOfWhole({
  record,
  parts,
}: Pick<RecordedWhole, "record" | "parts">): SampleOutcome {
  return withParts(outcomeOf(record), parts, "");
}

/** Makes it the outcome that its functions gave, whatever its group made of it. */
export function givenOutcomeOfWhole({ record, parts }: RecordedWhole): SampleOutcome {
  return withParts(givenOutcomeOf(record), parts, "");
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
