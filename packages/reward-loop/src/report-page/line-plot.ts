/**
 * Curves over one axis. A long curve is thinned: the lowest and the highest of every few points are
 * kept, so that no peak is lost.
 */

import { itemAt } from "@rayling/reward-manager-registry/values";
import { axisOf, linearTicks, numberText } from "./axis.ts";
import type { Axis } from "./axis.ts";
import { colourCount, escaped } from "./html.ts";
import { frame, xOf, yOf } from "./plot-frame.ts";

type Point = readonly [x: number, y: number];

export interface Curve {
  readonly name: string;
  /** Points in order of x. Those whose y is null or not finite are left out. */
  readonly points: readonly (readonly [x: number, y: number | null])[];
}

export interface LinePlot {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** At most as many as there are colours; the title counts the others, which are left out. */
  readonly curves: readonly Curve[];
  readonly xText?: (value: number) => string;
}

/** The most points of a curve: more would overlap. */
const mostPoints = 400;

/** Returns "" where no curve has a value. */
export function linePlot({ title, xLabel, yLabel, curves, xText }: LinePlot): string {
  const shown = curves.slice(0, colourCount);
  const values = shown.flatMap(({ points }) => points.flatMap(([, y]) => (isValue(y) ? [y] : [])));
  if (values.length === 0) return "";
  const xs = shown.flatMap(({ points }) => points.map(([at]) => at));
  const x = xAxisOf(xs);
  const y = yAxisOf(values);
  const left = curves.length - shown.length;
  return frame({
    title: left === 0 ? title : `${title} (without ${left} more)`,
    xLabel,
    yLabel,
    x,
    y,
    ...(xText === undefined ? {} : { xText }),
    names: shown.map(({ name }) => name),
    content: shown.map((curve, index) => drawn(curve, index, { x, y }, xText)).join("\n"),
  });
}

function xAxisOf(xs: readonly number[]): Axis {
  const [low, high] = [least(xs), most(xs)];
  const inside = linearTicks(low, high, 8).filter((tick) => tick >= low && tick <= high);
  const { at } = axisOf(low === high ? [low - 0.5, low + 0.5] : [low, high]);
  return { ticks: inside.length === 0 ? [low] : inside, at };
}

/** Begins at 0, unless that would squeeze the values into a corner. */
function yAxisOf(values: readonly number[]): Axis {
  const [low, high] = [least(values), most(values)];
  const from = low > 0 && low < high / 2 ? 0 : low;
  const to = high < 0 && high > low / 2 ? 0 : high;
  return axisOf(linearTicks(from, to));
}

function drawn(
  { name, points }: Curve,
  index: number,
  { x, y }: { readonly x: Axis; readonly y: Axis },
  xText: (value: number) => string = numberText,
): string {
  const shown = thinned(points.filter((point): point is Point => isValue(point[1])));
  const at = shown.map(([px, py]) => `${xOf(x, px)},${yOf(y, py)}`);
  // The points of a short curve are visible; others appear under the pointer.
  const isFew = shown.length <= 12;
  const marks = shown.map(
    ([px, py]) =>
      `<circle class="point${isFew ? " few" : ""} c${index}" cx="${xOf(x, px)}" cy="${yOf(y, py)}" r="${isFew ? 2.5 : 4}"><title>${escaped(`${name}: ${numberText(py)} at ${xText(px)}`)}</title></circle>`,
  );
  return `<polyline class="curve c${index}" points="${at.join(" ")}"/>${marks.join("")}`;
}

function thinned(points: readonly Point[]): readonly Point[] {
  if (points.length <= mostPoints) return points;
  const size = Math.ceil((2 * points.length) / mostPoints);
  const kept: Point[] = [];
  for (let from = 0; from < points.length; from += size) {
    const sorted = points.slice(from, from + size).toSorted(([, a], [, b]) => a - b);
    const [lowest, highest] = [itemAt(sorted, 0), itemAt(sorted, sorted.length - 1)];
    kept.push(...(lowest[0] < highest[0] ? [lowest, highest] : [highest, lowest]));
  }
  return kept;
}

function isValue(value: number | null): value is number {
  return value !== null && Number.isFinite(value);
}

function least(values: readonly number[]): number {
  return values.reduce((low, value) => Math.min(low, value), Infinity);
}

function most(values: readonly number[]): number {
  return values.reduce((high, value) => Math.max(high, value), -Infinity);
}
