/**
 * A reward log as one self-contained page: its figures, and its course over time.
 */

import type { RewardReport } from "@rayling/reward-loop";
import { figuresTable, htmlPage, linePlot, section, table } from "@rayling/reward-loop/page";
import { figuresOf, partColumns, partsOf } from "./rewards-figures.ts";

type Part = RewardReport["timeline"][number];

interface Plot {
  readonly title: string;
  readonly yLabel: string;
  readonly curves: Readonly<Record<string, (part: Part) => number | null>>;
}

const plots: readonly Plot[] = [
  {
    title: "Throughput",
    yLabel: "outcomes in each part of the time",
    curves: { all: ({ done }) => done },
  },
  {
    title: "Latency",
    yLabel: "ms",
    curves: { p50: ({ latencyP50Ms }) => latencyP50Ms, p95: ({ latencyP95Ms }) => latencyP95Ms },
  },
  {
    title: "Failures",
    yLabel: "invalid outcomes",
    curves: { invalid: ({ invalid }) => invalid },
  },
  {
    title: "Cost",
    yLabel: "spent in each part of the time",
    curves: { cost: ({ cost }) => cost },
  },
];

export function rewardsPage(log: string, report: RewardReport): string {
  const failures = report.failures.map((one) => [
    String(one.count),
    one.class,
    one.code,
    one.example,
  ]);
  const parts = partsOf(report);
  return htmlPage({
    title: `Rewards: ${log}`,
    subtitle: `${report.from ?? "-"} to ${report.to ?? "-"}`,
    sections: [
      figuresTable(figuresOf(report)),
      section(
        "Failures by class",
        failures.length === 0 ? "" : table(["count", "class", "code", "for example"], failures),
      ),
      section(
        "Rewards",
        parts.length === 0
          ? ""
          : table(
              partColumns,
              parts.map((part) => partColumns.map((name) => part[name] ?? "")),
            ),
      ),
      section("Over time", plotted(report.timeline)),
    ],
  });
}

function plotted(timeline: readonly Part[]): string {
  const drawn = plots.map(({ title, yLabel, curves }) =>
    linePlot({
      title,
      xLabel: "time (UTC)",
      yLabel,
      xText: (ms) => new Date(ms).toISOString().slice(11, 19),
      curves: Object.entries(curves).map(([name, valueOf]) => ({
        name,
        points: timeline.map((part) => [Date.parse(part.at), valueOf(part)] as const),
      })),
    }),
  );
  return timeline.length === 0 ? "" : `<div class="plots">${drawn.join("\n")}</div>`;
}
