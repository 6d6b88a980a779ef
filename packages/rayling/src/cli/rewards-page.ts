/** A reward log as one page that needs nothing else: its figures, and what happened over time. */

import type { RewardReport } from "@rayling/reward-loop";
import { figuresOf } from "./rewards-figures.ts";

type Part = RewardReport["timeline"][number];

interface Curve {
  readonly name: string;
  readonly colour: string;
  readonly valueOf: (part: Part) => number | null;
}

interface Plot {
  readonly title: string;
  readonly unit: string;
  readonly curves: readonly Curve[];
}

const plots: readonly Plot[] = [
  {
    title: "Throughput",
    unit: "outcomes in each part of the time",
    curves: [{ name: "all", colour: "#2563eb", valueOf: ({ done }) => done }],
  },
  {
    title: "Latency",
    unit: "ms",
    curves: [
      { name: "p50", colour: "#2563eb", valueOf: ({ latencyP50Ms }) => latencyP50Ms },
      { name: "p95", colour: "#f59e0b", valueOf: ({ latencyP95Ms }) => latencyP95Ms },
    ],
  },
  {
    title: "Failures",
    unit: "invalid outcomes",
    curves: [{ name: "invalid", colour: "#dc2626", valueOf: ({ invalid }) => invalid }],
  },
  {
    title: "Cost",
    unit: "spent in each part of the time",
    curves: [{ name: "cost", colour: "#059669", valueOf: ({ cost }) => cost }],
  },
];

const size = { width: 720, height: 180, left: 60, right: 10, top: 10, bottom: 24 } as const;

export function rewardsPage(log: string, report: RewardReport): string {
  const rows = figuresOf(report)
    .map(([name, value]) => `<tr><th>${escaped(name)}</th><td>${escaped(value)}</td></tr>`)
    .join("\n");
  const failures = report.failures
    .map(
      (one) =>
        `<tr><td>${one.count}</td><td>${escaped(one.class)}</td><td>${escaped(one.code)}</td><td>${escaped(one.example)}</td></tr>`,
    )
    .join("\n");
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rewards: ${escaped(log)}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 780px; margin: 2em auto; padding: 0 1em; color: #1f2937; }
table { border-collapse: collapse; } th, td { text-align: left; padding: 2px 16px 2px 0; vertical-align: top; }
h2 { margin: 1.6em 0 0.3em; font-size: 1.1em; } svg { width: 100%; height: auto; } text { font-size: 11px; fill: #6b7280; }
</style>
<h1>Rewards</h1>
<p>${escaped(log)}</p>
<table>${rows}</table>
${report.failures.length === 0 ? "" : `<h2>Failures by class</h2><table><tr><th>count</th><th>class</th><th>code</th><th>for example</th></tr>${failures}</table>`}
${plots.map((plot) => plotted(plot, report.timeline)).join("\n")}
</html>
`;
}

function plotted({ title, unit, curves }: Plot, timeline: readonly Part[]): string {
  const { width, height, left, right, top, bottom } = size;
  const most = Math.max(
    ...curves.flatMap(({ valueOf }) => timeline.map((part) => valueOf(part) ?? 0)),
    Number.MIN_VALUE,
  );
  const x = (index: number): number =>
    left + (index * (width - left - right)) / Math.max(1, timeline.length - 1);
  const y = (value: number): number => height - bottom - (value * (height - top - bottom)) / most;
  const lines = curves.map(({ name, colour, valueOf }) => {
    const points = timeline.flatMap((part, index) => {
      const value = valueOf(part);
      return value === null ? [] : [`${x(index).toFixed(1)},${y(value).toFixed(1)}`];
    });
    return `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${points.join(" ")}"><title>${name}</title></polyline>`;
  });
  const names = curves
    .map(({ name, colour }) => `<span style="color:${colour}">${name}</span>`)
    .join(", ");
  const [first, last] = [timeline[0], timeline.at(-1)];
  return `<h2>${title}</h2>
<div>${unit}: ${names}</div>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<line x1="${left}" y1="${y(0)}" x2="${width - right}" y2="${y(0)}" stroke="#d1d5db"/>
<line x1="${left}" y1="${y(most)}" x2="${width - right}" y2="${y(most)}" stroke="#f3f4f6"/>
<text x="${left - 6}" y="${y(0)}" text-anchor="end">0</text>
<text x="${left - 6}" y="${y(most) + 8}" text-anchor="end">${most === Number.MIN_VALUE ? "" : most.toPrecision(3)}</text>
<text x="${left}" y="${height - 6}">${timeText(first)}</text>
<text x="${width - right}" y="${height - 6}" text-anchor="end">${timeText(last)}</text>
${lines.join("\n")}
</svg>`;
}

function timeText(part: Part | undefined): string {
  return part === undefined ? "" : part.at.slice(11, 19);
}

/** Names and messages are others'. */
function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
