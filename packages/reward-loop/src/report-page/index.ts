/**
 * Public names of @rayling/reward-loop/page: building blocks of self-contained reports; a separate
 * entry.
 */

export { axisOf, linearTicks, numberText } from "./axis.ts";
export type { Axis } from "./axis.ts";
export {
  colourCount,
  escaped,
  figuresTable,
  htmlPage,
  pagePolicy,
  section,
  table,
} from "./html.ts";
export type { HtmlPage } from "./html.ts";
export { linePlot } from "./line-plot.ts";
export type { Curve, LinePlot } from "./line-plot.ts";
export { frame, legend, plotSize } from "./plot-frame.ts";
export type { PlotFrame } from "./plot-frame.ts";
