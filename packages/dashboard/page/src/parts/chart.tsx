/** A chart over time or over values, drawn by uPlot in the colours of the page. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { figure } from "../data/text.ts";

export interface Series {
  readonly label: string;
  /** The colour of that number: 0 to 7. */
  readonly colour: number;
  readonly isBars?: boolean;
}

interface ChartProps {
  /** What it shows, for those who do not see it. */
  readonly label: string;
  readonly series: readonly Series[];
  /** The x values, then those of each series. */
  readonly data: uPlot.AlignedData;
  readonly isTime?: boolean;
  readonly height?: number;
  /** Whether the values decide both ends of the axis; by default it begins at 0. */
  readonly isFree?: boolean;
  /** Names of the x values, where these are places: 0, 1, 2. */
  readonly names?: readonly string[];
  /** Called with the place of the x value that was clicked. */
  readonly onPick?: (at: number) => void;
}

export function Chart(props: ChartProps): JSX.Element {
  const { label, series, data, isTime, height = 150, isFree, names, onPick } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  // A chart that is drawn anew, as in other colours, has what it shows by then.
  const newest = useRef(data);
  newest.current = data;
  const shape = JSON.stringify([series, isTime, height, isFree, names]);
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      const width = Math.max(200, current.clientWidth);
      plot.current = new uPlot(
        optionsOf(
          { series, isTime: isTime === true, isFree: isFree === true, width, height, names },
          current,
        ),
        newest.current,
        current,
      );
    };
    draw();
    const sizes = new ResizeObserver(() => {
      const width = Math.max(200, current.clientWidth);
      if (plot.current?.width !== width) plot.current?.setSize({ width, height });
    });
    sizes.observe(current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = undefined;
    };
    // The data of a chart that stays is set below.
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [data]);
  const pick = (): void => {
    const at = plot.current?.cursor.idx;
    if (at !== undefined && at !== null) onPick?.(at);
  };
  return <div class="chart" role="img" aria-label={label} ref={box} onClick={pick} />;
}

interface Shape {
  readonly series: readonly Series[];
  readonly isTime: boolean;
  readonly isFree: boolean;
  readonly width: number;
  readonly height: number;
  readonly names: readonly string[] | undefined;
}

function optionsOf(shape: Shape, box: HTMLElement): uPlot.Options {
  const { series, isTime, isFree, width, height, names } = shape;
  const styles = getComputedStyle(box);
  const colour = (name: string): string => styles.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--dim"),
    font: "11px system-ui",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
  };
  return {
    width,
    height,
    legend: { show: series.length > 1, live: true },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: isTime
        ? { time: true, range: lastMinute }
        : { time: false, ...(isFree ? {} : { range: withBars }) },
      y: { range: isFree ? aroundValues : fromZero },
    },
    axes: [
      names === undefined ? axis : { ...axis, ...named(names) },
      { ...axis, size: 56, values: (_, ticks) => ticks.map(figure) },
    ],
    series: [
      {},
      ...series.map(({ label, colour: at, isBars }) => ({
        label,
        stroke: colour(`--c${at}`),
        ...(isBars === true
          ? { fill: colour(`--c${at}`), ...barPaths() }
          : { width: 1.8, points: { show: false }, spanGaps: true }),
      })),
    ],
  };
}

/** A tick at each place, and its name where there is room. */
function named(names: readonly string[]): Pick<uPlot.Axis, "splits" | "values"> {
  return {
    splits: () => names.map((_, at) => at),
    values: (plot, places) => {
      const every = Math.ceil((names.length * 52) / plot.width);
      return places.map((at) => (at % every === 0 ? (names[at] ?? "") : ""));
    },
  };
}

function barPaths(): Pick<uPlot.Series, "paths" | "points"> {
  const { bars } = uPlot.paths;
  const points = { show: false };
  return bars === undefined ? { points } : { paths: bars({ size: [0.9, 100] }), points };
}

/** A minute at least, in seconds. For a single value uPlot has wide ends of its own. */
function lastMinute({ data: [times] }: uPlot, low: number, high: number): [number, number] {
  const last = times.at(-1) ?? high;
  return [Math.min(times[0] ?? low, last - 60), last];
}

/** Half a bar more at both ends. */
function withBars({ data: [values] }: uPlot, low: number, high: number): [number, number] {
  const [first, last] = [values[0] ?? low, values.at(-1) ?? high];
  const half = values.length < 2 ? 0.5 : (last - first) / (values.length - 1) / 2;
  return [first - half, last + half];
}

function aroundValues(_: uPlot, low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  if (low !== high) return uPlot.rangeNum(low, high, 0.1, true) as [number, number];
  return low === 0 ? [0, 1] : [low - Math.abs(low) / 2, low + Math.abs(low) / 2];
}

function fromZero(_: uPlot, low: number | null, high: number | null): [number, number] {
  const most = high ?? 1;
  return [Math.min(0, low ?? 0), most > 0 ? most * 1.1 : 1];
}
