/**
 * From samples to figures to tables: what is reported of each contestant, the same words on the
 * terminal, in Markdown and in JSON.
 *
 * The ratio of each row is against the floors of its own table, which ran in the same rounds: the
 * floor is 1.00, slower is more for times and less for rates. A rate is calls per second of whole
 * rounds, so that pauses count; a time is the median of single iterations.
 */
import type { Table } from "./report.ts";
import { percentile, type Round, type Samples } from "./interleave.ts";

export interface Figure {
  readonly name: string;
  /** Timed iterations. */
  readonly n: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** The median of the rounds' means: with everything, garbage collection too. */
  readonly meanMs: number;
  /**
   * The median of the rounds: CPU time of all threads per iteration. It moves less than the clock
   * when neighbours are busy.
   */
  readonly cpuMs: number;
  readonly rounds: readonly Round[];
}

/** How one table reads its figures. */
export interface Section {
  readonly id: string;
  readonly title: string;
  /** "time": so long per iteration. "rate": so many of `perIteration` per second. */
  readonly reading: "time" | "rate";
  readonly perIteration: number;
  /** For times. */
  readonly unit: "us" | "ms";
  /** Contestants to divide by. */
  readonly floors: readonly string[];
}

export interface Measured extends Section {
  readonly figures: readonly Figure[];
}

export function figureOf({ name, sortedMs, rounds }: Samples): Figure {
  return {
    name,
    n: sortedMs.length,
    medianMs: percentile(sortedMs, 0.5),
    p99Ms: percentile(sortedMs, 0.99),
    meanMs: medianOf(rounds.map((round) => round.meanMs)),
    cpuMs: medianOf(rounds.map((round) => round.cpuMs)),
    rounds,
  };
}

export function tableOf(report: Measured): Table {
  const { reading, unit, floors, figures } = report;
  const heading =
    reading === "time"
      ? ["", "n", `median ${unit}`, `p99 ${unit}`, `rounds ${unit}`, `CPU ${unit}`]
      : ["", "n", "calls/s", "p99 ms", "rounds, k calls/s", "CPU us/call"];
  const ratios = floors.map((floor) => `x ${floor}`);
  const rows = figures.map((figure) => [...cellsOf(report, figure), ...ratiosOf(report, figure)]);
  return { title: report.title, rows: [[...heading, ...ratios], ...rows] };
}

/**
 * How many times the others' time or rate a contestant has: of times less is better, of rates more.
 * The best of the others counts.
 */
export function ratioTo(
  { reading, figures }: Measured,
  name: string,
  isOther: (name: string) => boolean,
): number {
  const of = ({ medianMs, meanMs }: Figure): number => (reading === "time" ? medianMs : 1 / meanMs);
  const others = figures.filter((figure) => isOther(figure.name)).map(of);
  const best = reading === "time" ? Math.min(...others) : Math.max(...others);
  const own = figures.find((figure) => figure.name === name);
  return own === undefined ? Number.NaN : of(own) / best;
}

/** CPU time of one contestant over that of another. */
export function cpuRatio({ figures }: Measured, name: string, other: string): number {
  const of = (wanted: string): number =>
    figures.find((figure) => figure.name === wanted)?.cpuMs ?? Number.NaN;
  return of(name) / of(other);
}

function cellsOf(
  report: Measured,
  { name, n, medianMs, p99Ms, meanMs, cpuMs, rounds }: Figure,
): readonly string[] {
  const count = n.toLocaleString("en-US");
  const time = (ms: number): string => timeText(ms, report.unit);
  if (report.reading === "time") {
    const medians = rounds.map((round) => round.medianMs);
    const spread = `${time(Math.min(...medians))} - ${time(Math.max(...medians))}`;
    return [name, count, time(medianMs), time(p99Ms), spread, time(cpuMs)];
  }
  const rate = (ms: number): number => (report.perIteration / ms) * 1000;
  const means = rounds.map((round) => round.meanMs);
  const [least, most] = [rate(Math.max(...means)), rate(Math.min(...means))];
  const spread = `${Math.round(least / 1000)} - ${Math.round(most / 1000)}`;
  const calls = Math.round(rate(meanMs)).toLocaleString("en-US");
  return [
    name,
    count,
    calls,
    timeText(p99Ms, "ms"),
    spread,
    ((cpuMs * 1000) / report.perIteration).toFixed(2),
  ];
}

/** Medians for times, mean rates for rates: what the table shows. */
function ratiosOf({ reading, floors, figures }: Measured, figure: Figure): readonly string[] {
  return floors.map((name) => {
    const floor = figures.find((one) => one.name === name);
    if (floor === undefined) return "";
    const ratio =
      reading === "time" ? figure.medianMs / floor.medianMs : floor.meanMs / figure.meanMs;
    return ratio.toFixed(2);
  });
}

export function medianOf(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}

function timeText(ms: number, unit: "us" | "ms"): string {
  return unit === "us" ? (ms * 1000).toFixed(1) : ms.toPrecision(3);
}
