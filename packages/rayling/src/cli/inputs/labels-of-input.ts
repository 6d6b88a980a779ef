/**
 * The labels of an input for the records of a log, which may have been written from other labels,
 * or from none. A record is found by what its sample says; equal samples match one by one.
 */

import { keysOfRecord, olderSampleKeys, sampleKey } from "@rayling/reward-loop";
import type { JudgesReportOptions, SampleLabel } from "@rayling/reward-loop";
import type { Solutions } from "./solutions.ts";

/** Reads the input once. */
export async function labelsOfInput({
  read,
}: Pick<Solutions, "read">): Promise<JudgesReportOptions["labelOf"] & {}> {
  const labels = new Map<string, (SampleLabel | undefined)[]>();
  for await (const sample of read()) {
    for (const key of [sampleKey(sample), ...olderSampleKeys(sample)]) {
      const own = labels.get(key);
      if (own === undefined) labels.set(key, [sample.label]);
      else own.push(sample.label);
    }
  }
  return (record, before) => {
    const key = keysOfRecord(record).find((one) => labels.has(one));
    const own = key === undefined ? [] : (labels.get(key) ?? []);
    // One that the input has less often than the log has the label of the last.
    return own[Math.min(before, own.length - 1)];
  };
}
