/**
 * The phases of each step as bars: a row for each step, with time from its start to the right, and
 * below them the number of its rewards on the way. verl's timers "reward" and "adv" contain the
 * waiting for rewards. A phase that began before the step, as in a schedule that is one step ahead,
 * lies left of 0.
 */

import {
  axisOf,
  colourCount,
  escaped,
  legend,
  linearTicks,
  numberText,
} from "@rayling/reward-loop/page";
import type { Axis } from "@rayling/reward-loop/page";
import { present } from "@rayling/reward-manager-registry/values";
import { spanText } from "../console/time-left.ts";
import type { RunRecord } from "../files/run-files.ts";
import type { PhaseLine, SampleLine } from "../files/run-lines.ts";
import { inFlightOver } from "./in-flight.ts";

const size = {
  width: 1060,
  left: 62,
  right: 14,
  lane: 11,
  rewards: 12,
  gap: 6,
  bottom: 38,
} as const;
/** Number of steps drawn, spread over the run. */
const mostSteps = 40;

interface Row {
  readonly step: number;
  readonly startMs: number;
  /** Lanes of the tracks, the trainer's first. */
  readonly lanes: readonly (readonly PhaseLine[])[];
  readonly samples: readonly SampleLine[];
}

/** Returns an empty text where no phases were reported. */
export function ganttOf({ phases, samples }: RunRecord): string {
  const rows = spread(rowsOf(phases, samples), mostSteps);
  if (rows.length === 0) return "";
  const classOf = coloursOf(rows.flatMap(({ lanes }) => lanes.flat()));
  const x = timeAxis(rows);
  let top = 4;
  const drawn = rows.map((row) => {
    const svg = drawnRow(row, top, x, classOf);
    top += heightOf(row);
    return svg;
  });
  const foot = top + 2;
  const height = foot + size.bottom;
  return `<figure><figcaption>Phases${legend([...classOf.names])}<span>\u25B2 rewards on their way</span></figcaption>
<svg viewBox="0 0 ${size.width} ${height}" role="img" aria-label="Phases of each step">
${x.ticks.map((tick) => tickAt(tick, x, foot)).join("")}
${drawn.join("\n")}
<text x="${(size.width + size.left) / 2}" y="${height - 6}" text-anchor="middle">s since the start of the step</text>
<text x="12" y="${foot / 2}" text-anchor="middle" transform="rotate(-90 12 ${foot / 2})">step</text>
</svg></figure>`;
}

function rowsOf(phases: readonly PhaseLine[], samples: readonly SampleLine[]): readonly Row[] {
  const samplesOf = Map.groupBy(samples, ({ step }) => step);
  return [...Map.groupBy(phases, ({ step }) => step)]
    .toSorted(([a], [b]) => a - b)
    .map(([step, own]) => {
      const lanes = Map.groupBy(own, ({ track }) => track ?? "trainer");
      const trainer = lanes.get("trainer") ?? [];
      const others = [...lanes].filter(([track]) => track !== "trainer").map(([, lane]) => lane);
      const startMs = least((trainer.length === 0 ? own : trainer).map((phase) => phase.startMs));
      // Long phases first: phases within them are drawn over them.
      const sorted = [trainer, ...others].map((lane) =>
        lane.toSorted((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs)),
      );
      return { step, startMs, lanes: sorted, samples: samplesOf.get(step) ?? [] };
    });
}

function spread<Item>(items: readonly Item[], count: number): readonly Item[] {
  if (items.length <= count) return items;
  return Array.from({ length: count }, (_, index) =>
    present(items[Math.round((index * (items.length - 1)) / (count - 1))], `item ${index}`),
  );
}

interface Colours {
  (name: string): string;
  readonly names: readonly string[];
}

/**
 * verl's timers in the order in which a step runs them: the same phase has the same colour in one
 * run and the next.
 */
const order = [
  "gen",
  "reward",
  "old_log_prob",
  "ref",
  "values",
  "adv",
  "update_critic",
  "update_actor",
  "testing",
  "save_checkpoint",
];

/** Returns a colour for each of the phases that took longest, and one for all others. */
function coloursOf(phases: readonly PhaseLine[]): Colours {
  const totals = new Map<string, number>();
  for (const { name, startMs, endMs } of phases) {
    totals.set(name, (totals.get(name) ?? 0) + endMs - startMs);
  }
  const byTime = [...totals.keys()].toSorted((a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0));
  const own = (byTime.length <= colourCount ? byTime : byTime.slice(0, colourCount - 1)).toSorted(
    (a, b) => placeOf(a) - placeOf(b),
  );
  const names = own.length === byTime.length ? own : [...own, "other"];
  const classOf = (name: string): string =>
    `c${own.includes(name) ? own.indexOf(name) : own.length}`;
  return Object.assign(classOf, { names });
}

function placeOf(name: string): number {
  const place = order.indexOf(name);
  return place === -1 ? order.length : place;
}

function timeAxis(rows: readonly Row[]): Axis {
  const times = rows.flatMap(({ startMs, lanes, samples }) =>
    [
      ...lanes.flat().flatMap((phase) => [phase.startMs, phase.endMs]),
      ...samples.flatMap((sample) => [sample.generatedMs, sample.scoredMs]),
    ].map((ms) => (ms - startMs) / 1000),
  );
  const high = -least(times.map((time) => -time));
  return axisOf(linearTicks(least(times), high, 10));
}

function heightOf({ lanes }: Row): number {
  return lanes.length * size.lane + size.rewards + size.gap;
}

function drawnRow(row: Row, top: number, x: Axis, classOf: Colours): string {
  const bars = row.lanes.flatMap((lane, index) =>
    lane.map((phase) => {
      const [from, to] = [phase.startMs, phase.endMs].map((ms) =>
        xOf(x, (ms - row.startMs) / 1000),
      );
      const width = Math.max(0.7, Number(to) - Number(from)).toFixed(1);
      const about = `${phase.name} of step ${row.step}: ${spanText(phase.endMs - phase.startMs)}`;
      return `<rect class="bar phase ${classOf(phase.name)}" x="${from}" y="${top + index * size.lane}" width="${width}" height="${size.lane - 1}"><title>${escaped(about)}</title></rect>`;
    }),
  );
  const foot = top + row.lanes.length * size.lane + size.rewards;
  const label = `<text x="${size.left - 6}" y="${top + size.lane}" text-anchor="end">${escaped(String(row.step))}</text>`;
  return [label, ...bars, inFlightArea(row, foot, x)].join("");
}

function inFlightArea({ samples, startMs }: Row, foot: number, x: Axis): string {
  const counts = inFlightOver(samples);
  if (counts.length === 0) return "";
  const most = -least(counts.map(({ count }) => -count));
  const points = counts.map(
    ({ atMs, count }) =>
      `${xOf(x, (atMs - startMs) / 1000)},${(foot - (size.rewards - 1) * (count / most)).toFixed(1)}`,
  );
  const [first, last] = [counts[0], counts.at(-1)].map((end) =>
    xOf(x, ((end?.atMs ?? startMs) - startMs) / 1000),
  );
  return `<polygon class="rewards" points="${first},${foot} ${points.join(" ")} ${last},${foot}"/>`;
}

function tickAt(tick: number, x: Axis, foot: number): string {
  const at = xOf(x, tick);
  return `<line class="grid" x1="${at}" y1="0" x2="${at}" y2="${foot}"/><text x="${at}" y="${foot + 14}" text-anchor="middle">${numberText(tick)}</text>`;
}

function xOf(axis: Axis, seconds: number): string {
  return (size.left + axis.at(seconds) * (size.width - size.left - size.right)).toFixed(1);
}

function least(values: readonly number[]): number {
  return values.reduce((low, value) => Math.min(low, value), Infinity);
}
