/** The frame of every plot: a title, a legend, two axes with their names, lines at their ticks. */

import { numberText } from "./axis.ts";
import type { Axis } from "./axis.ts";
import { escaped } from "./html.ts";

/** The picture's size in its own units, and the margins around its content. */
export const plotSize = {
  width: 520,
  height: 230,
  left: 62,
  right: 14,
  top: 8,
  bottom: 38,
} as const;

export interface PlotFrame {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly x: Axis;
  readonly y: Axis;
  /** How a tick is written. Default `numberText`. */
  readonly xText?: (value: number) => string;
  readonly yText?: (value: number) => string;
  /** Names of the series in their order, each with its colour; none for a plot of one thing. */
  readonly names: readonly string[];
  /** The content as SVG. */
  readonly content: string;
}

export function frame(plot: PlotFrame): string {
  const { title, xLabel, yLabel, x, y, xText = numberText, yText = numberText, content } = plot;
  const { width, height, left, right, top, bottom } = plotSize;
  const columns = x.ticks.map((tick) => {
    const at = xOf(x, tick);
    return `<text x="${at}" y="${height - bottom + 14}" text-anchor="middle">${escaped(xText(tick))}</text>`;
  });
  const rows = y.ticks.map((tick) => {
    const at = yOf(y, tick);
    return `<line class="grid" x1="${left}" y1="${at}" x2="${width - right}" y2="${at}"/><text x="${left - 6}" y="${Number(at) + 4}" text-anchor="end">${escaped(yText(tick))}</text>`;
  });
  const middle = top + (height - top - bottom) / 2;
  return `<figure><figcaption>${escaped(title)}${legend(plot.names)}</figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">
${rows.join("")}${columns.join("")}
<text x="${left + (width - left - right) / 2}" y="${height - 6}" text-anchor="middle">${escaped(xLabel)}</text>
<text x="12" y="${middle}" text-anchor="middle" transform="rotate(-90 12 ${middle})">${escaped(yLabel)}</text>
${content}
</svg></figure>`;
}

export function legend(names: readonly string[]): string {
  return names
    .map((name, index) => `<span class="c${index}">\u25A0 ${escaped(name)}</span>`)
    .join("");
}

export function xOf(axis: Axis, value: number): string {
  const { width, left, right } = plotSize;
  return (left + axis.at(value) * (width - left - right)).toFixed(1);
}

export function yOf(axis: Axis, value: number): string {
  const { height, top, bottom } = plotSize;
  return (height - bottom - axis.at(value) * (height - top - bottom)).toFixed(1);
}
