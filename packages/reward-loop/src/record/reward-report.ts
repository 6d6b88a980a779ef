/**
 * A summary of a reward log: counts, scores, failures, times and costs. Among several lines for one
 * index the one that counts is used (takesPlaceOf); tries and costs are those of all lines. A part
 * without its whole, which a killed process leaves, is a cost and no sample.
 */

import { wholesOf } from "./records-with-parts.ts";
import type { RecordedWhole } from "./records-with-parts.ts";
import { isOfPart, readRewardLog } from "./reward-log-file.ts";
import { isOfCalls, takesPlaceOf, withoutTexts } from "./reward-record.ts";
import type { RewardRecord } from "./reward-record.ts";

/** A summary of a reward log. */
export interface RewardReport {
  /** Number of samples. */
  readonly samples: number;
  /** Samples with a score. */
  readonly valid: number;
  /** Samples without a score. */
  readonly invalid: number;
  /** Lines that others took the place of: what was scored again. */
  readonly superseded: number;
  /** The mean of all scores; null without one. */
  readonly meanScore: number | null;
  /** Failures by class and code, each with the message of one. */
  readonly failures: readonly {
    readonly class: string;
    readonly code: string;
    readonly count: number;
    readonly example: string;
  }[];
  /** Samples by version of the reward function, with the mean of their scores. */
  readonly versions: readonly {
    readonly version: string;
    readonly samples: number;
    readonly meanScore: number | null;
  }[];
  /** How many each of several functions has answered, the most first. */
  readonly answeredBy: readonly { readonly name: string; readonly samples: number }[];
  /** The parts that were asked, with several rewards or a cascade. */
  readonly components: readonly {
    readonly name: string;
    readonly samples: number;
    readonly valid: number;
    readonly meanScore: number | null;
    readonly cost: number;
    readonly latencyP50Ms: number | null;
  }[];
  /**
   * The attempts at all samples, including failed ones. A call for a group is an attempt at each of
   * its members.
   */
  readonly attempts: number;
  /** Samples whose score was cached. */
  readonly cached: number;
  /** How long score functions took, for samples that called one. */
  readonly latencyMs: Quantiles;
  /** How long samples waited, if they called a score function. */
  readonly waitedMs: Quantiles;
  /** Tokens of all calls, where they are known. */
  readonly tokens: { readonly input: number; readonly output: number };
  /** The cost of all calls, where prices are known. */
  readonly cost: number;
  /** The times of the first and the last line. */
  readonly from: string | null;
  /** The time of the last line, as ISO 8601; null without lines. */
  readonly to: string | null;
  /** Outcomes per second between these times; null if they are equal. */
  readonly perSecond: number | null;
  /** Outcomes in equal parts of that time. */
  readonly timeline: readonly {
    readonly at: string;
    readonly done: number;
    readonly invalid: number;
    readonly cost: number;
    readonly latencyP50Ms: number | null;
    readonly latencyP95Ms: number | null;
  }[];
}

/** Quantiles of a measurement; null without values. */
export interface Quantiles {
  /** The median. */
  readonly p50: number | null;
  /** 95 % of the values are at most this. */
  readonly p95: number | null;
  /** 99 % of the values are at most this. */
  readonly p99: number | null;
  /** The largest value. */
  readonly max: number | null;
}

/** Rejects as readRewardLog. */
export async function reportOf(path: string): Promise<RewardReport> {
  const read = await Array.fromAsync(readRewardLog(path), withoutTexts);
  const all = read.filter(isOfCalls);
  const lines = all.filter((line) => !isOfPart(line));
  const wholes = await Array.fromAsync(wholesOf(path));
  const records = countedOf(wholes.map(({ record }) => record));
  const valid = records.filter((record) => record.valid);
  const called = records.filter(wasCalled);
  const times = lines.map(({ at }) => Date.parse(at)).toSorted((a, b) => a - b);
  const [firstMs] = times;
  const lastMs = times.at(-1);
  const seconds = firstMs === undefined || lastMs === undefined ? 0 : (lastMs - firstMs) / 1000;
  return {
    samples: records.length,
    valid: valid.length,
    invalid: records.length - valid.length,
    superseded: lines.length - records.length,
    meanScore: meanOf(valid),
    failures: failuresOf(records),
    versions: [...Map.groupBy(records, ({ version }) => version)].map(([version, own]) => ({
      version,
      samples: own.length,
      meanScore: meanOf(own.filter((record) => record.valid)),
    })),
    answeredBy: answersOf(records),
    components: componentsOf(all.filter(isOfPart), wholes),
    attempts: sumOf(lines, ({ attempts }) => attempts),
    cached: records.filter(({ cached }) => cached).length,
    latencyMs: quantilesOf(called.map(({ latencyMs }) => latencyMs)),
    waitedMs: quantilesOf(called.map(({ waitedMs }) => waitedMs)),
    tokens: {
      input: sumOf(lines, (line) => usageIn(line)?.inputTokens ?? 0),
      output: sumOf(lines, (line) => usageIn(line)?.outputTokens ?? 0),
    },
    cost: sumOf(lines, ({ cost }) => cost ?? 0),
    from: isoOf(firstMs),
    to: isoOf(lastMs),
    perSecond: seconds > 0 ? lines.length / seconds : null,
    timeline: timelineOf(lines, firstMs, lastMs),
  };
}

/** Lines of earlier releases have the usage of cached samples, which was paid before. */
function usageIn({ cached, attempts, usage }: RewardRecord): RewardRecord["usage"] {
  return cached && attempts === 0 ? null : usage;
}

/** A cached or uncalled sample took no time. */
function wasCalled({ cached, attempts }: RewardRecord): boolean {
  return !cached && attempts > 0;
}

function answersOf(records: readonly RewardRecord[]): RewardReport["answeredBy"] {
  const answered = records.filter((one) => one.valid && typeof one.answeredBy === "string");
  return [...Map.groupBy(answered, ({ answeredBy }) => answeredBy ?? "")]
    .map(([name, own]) => ({ name, samples: own.length }))
    .toSorted((a, b) => b.samples - a.samples);
}

function countedOf(lines: readonly RewardRecord[]): RewardRecord[] {
  const counted = new Map<number, RewardRecord>();
  for (const line of lines) {
    if (takesPlaceOf(line, counted.get(line.index))) counted.set(line.index, line);
  }
  return [...counted.values()];
}

/** Costs are of all lines, as for the whole; what was scored again counts once. */
function componentsOf(
  lines: readonly RewardRecord[],
  wholes: readonly RecordedWhole[],
): RewardReport["components"] {
  const ofWholes = Map.groupBy(
    wholes.flatMap(({ parts: own }) => own.filter(isOfCalls)),
    ({ component }) => component ?? "",
  );
  return [...Map.groupBy(lines, ({ component }) => component ?? "")]
    .map(([name, own]) => {
      const records = countedOf(ofWholes.get(name) ?? []);
      const valid = records.filter((record) => record.valid);
      const called = own.filter(wasCalled);
      return {
        name,
        samples: records.length,
        valid: valid.length,
        meanScore: meanOf(valid),
        cost: sumOf(own, ({ cost }) => cost ?? 0),
        latencyP50Ms: quantilesOf(called.map(({ latencyMs }) => latencyMs)).p50,
      };
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const parts = 60;

function timelineOf(
  lines: readonly RewardRecord[],
  firstMs: number | undefined,
  lastMs: number | undefined,
): RewardReport["timeline"] {
  if (firstMs === undefined || lastMs === undefined) return [];
  const partMs = Math.max(1, (lastMs - firstMs) / parts);
  const byPart = Map.groupBy(lines, ({ at }) =>
    Math.min(parts - 1, Math.floor((Date.parse(at) - firstMs) / partMs)),
  );
  const count = Math.min(parts, Math.ceil((lastMs - firstMs) / partMs) || 1);
  return Array.from({ length: count }, (_, part) => {
    const own = byPart.get(part) ?? [];
    const { p50, p95 } = quantilesOf(own.filter(wasCalled).map(({ latencyMs }) => latencyMs));
    return {
      at: new Date(firstMs + part * partMs).toISOString(),
      done: own.length,
      invalid: own.filter((record) => !record.valid).length,
      cost: sumOf(own, ({ cost }) => cost ?? 0),
      latencyP50Ms: p50,
      latencyP95Ms: p95,
    };
  });
}

function failuresOf(records: readonly RewardRecord[]): RewardReport["failures"] {
  const invalid = records.filter((record) => !record.valid);
  const keyOf = ({ errorClass, error }: RewardRecord): string =>
    `${errorClass ?? "unknown"} ${error?.code ?? "unknown"}`;
  return [...Map.groupBy(invalid, keyOf)]
    .map(([key, own]) => {
      const [failure = "", code = ""] = key.split(" ");
      return { class: failure, code, count: own.length, example: own[0]?.error?.message ?? "" };
    })
    .toSorted((a, b) => b.count - a.count);
}

function quantilesOf(values: readonly number[]): Quantiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number | null =>
    sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: sorted.at(-1) ?? null };
}

function meanOf(records: readonly RewardRecord[]): number | null {
  if (records.length === 0) return null;
  return sumOf(records, ({ score }) => score ?? 0) / records.length;
}

function sumOf(
  records: readonly RewardRecord[],
  valueOf: (record: RewardRecord) => number,
): number {
  return records.reduce((sum, record) => sum + valueOf(record), 0);
}

function isoOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
