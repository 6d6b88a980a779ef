/** How many there are of what: bars that stand on an axis, which may be a logarithmic one. */

import { axisOf, linearTicks, logTicks } from "./axis.ts";
import { escaped } from "./html.ts";
import { frame, plotSize, xOf, yOf } from "./plot-frame.ts";

export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly value: number;
  /** Shown when it is pointed at. */
  readonly text: string;
}

export interface BarPlot {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly bars: readonly Bar[];
  /** Logarithmic; then all `from` are above 0. */
  readonly isLog?: boolean;
  readonly xText?: (value: number) => string;
}

/** Returns "" without bars. */
export function barPlot({ bars, isLog = false, title, xLabel, yLabel, xText }: BarPlot): string {
  if (bars.length === 0) return "";
  const low = Math.min(...bars.map(({ from }) => from));
  const high = Math.max(...bars.map(({ to }) => to));
  const x = isLog ? axisOf(logTicks(low, high), Math.log10) : axisOf(linearTicks(low, high));
  const y = axisOf(linearTicks(0, Math.max(...bars.map(({ value }) => value))));
  const foot = plotSize.height - plotSize.bottom;
  const content = bars.map(({ from, to, value, text }) => {
    const [left, right, top] = [Number(xOf(x, from)), Number(xOf(x, to)), Number(yOf(y, value))];
    return `<rect class="bar c0" x="${left}" y="${top}" width="${Math.max(0.5, right - left - 0.5).toFixed(1)}" height="${(foot - top).toFixed(1)}"><title>${escaped(text)}</title></rect>`;
  });
  return frame({
    title,
    xLabel,
    yLabel,
    x,
    y,
    ...(xText === undefined ? {} : { xText }),
    names: [],
    content: content.join("\n"),
  });
}
