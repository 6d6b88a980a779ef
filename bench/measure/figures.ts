/**
 * From samples to figures to tables: what is reported of each contestant, the same words on the terminal, in Markdown and in JSON.
 *
 * The ratio of each row is against the floor of its own table, which ran in the same rounds. Ratios are given so that 1.00 is the floor
 * and greater is always slower for times, smaller is always slower for rates.
 */
import { percentile, type Samples } from "./interleave.ts";

export interface Figure {
  readonly name: string;
  /** Timed iterations. */
  readonly n: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Fastest and slowest round, by their medians. */
  readonly roundMediansMs: readonly number[];
}

/** How one table reads its figures. */
export interface Section {
  readonly id: string;
  readonly title: string;
  /** "time": so long per iteration. "rate": so many of `perIteration` per second. */
  readonly reading: "time" | "rate";
  readonly perIteration: number;
  readonly unit: "us" | "ms";
  /** Contestants to divide by. */
  readonly floors: readonly string[];
}

export interface Report extends Section {
  readonly figures: readonly Figure[];
}

export function figureOf({ name, sortedMs, roundMediansMs }: Samples): Figure {
  return {
    name,
    n: sortedMs.length,
    medianMs: percentile(sortedMs, 0.5),
    p99Ms: percentile(sortedMs, 0.99),
    roundMediansMs,
  };
}

/** The first row is the heading. */
export function tableOf(report: Report): readonly (readonly string[])[] {
  const { reading, unit, floors, figures } = report;
  const heading =
    reading === "time"
      ? ["", "n", `median ${unit}`, `p99 ${unit}`, `rounds ${unit}`]
      : ["", "n", "calls/s", `p99 ${unit}`, "rounds, k calls/s"];
  const ratios = floors.map((floor) => `x ${floor}`);
  return [[...heading, ...ratios], ...figures.map((figure) => rowOf(report, figure))];
}

function rowOf(report: Report, figure: Figure): readonly string[] {
  const { reading, floors, figures } = report;
  const time = (ms: number): string => timeText(ms, report.unit);
  const rate = (ms: number): number => (report.perIteration / ms) * 1000;
  const least = Math.min(...figure.roundMediansMs);
  const most = Math.max(...figure.roundMediansMs);
  const cells =
    reading === "time"
      ? [time(figure.medianMs), time(figure.p99Ms), `${time(least)} - ${time(most)}`]
      : [
          Math.round(rate(figure.medianMs)).toLocaleString("en-US"),
          time(figure.p99Ms),
          `${Math.round(rate(most) / 1000)} - ${Math.round(rate(least) / 1000)}`,
        ];
  const ratios = floors.map((name) => {
    const floor = figures.find((one) => one.name === name);
    if (floor === undefined) return "";
    const ratio =
      reading === "time" ? figure.medianMs / floor.medianMs : floor.medianMs / figure.medianMs;
    return ratio.toFixed(2);
  });
  return [figure.name, figure.n.toLocaleString("en-US"), ...cells, ...ratios];
}

function timeText(ms: number, unit: "us" | "ms"): string {
  return unit === "us" ? (ms * 1000).toFixed(1) : ms.toPrecision(3);
}

export function terminalTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ");
  return rows.map(line).join("\n");
}

export function markdownTable(rows: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]): string => `| ${row.join(" | ")} |`;
  const [heading = [], ...body] = rows;
  const rule = heading.map((_, column) => (column === 0 ? "---" : "---:"));
  return [line(heading), line(rule), ...body.map(line)].join("\n");
}
