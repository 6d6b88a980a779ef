/**
 * `/aggregate_metrics` of a NeMo-Gym resources server, which its agents ask when all rollouts are
 * there (AggregateMetrics of nemo_gym/config_types.py): of every number in the rows its mean,
 * largest, smallest, median and deviation, for each task and in all. Left out: histograms, and
 * figures of one benchmark's own.
 */

import { z } from "zod";

type Row = Readonly<Record<string, unknown>>;

export interface FiguresRequest {
  readonly verify_responses: readonly Row[];
}

export const figuresRequest: z.ZodType<FiguresRequest> = z.looseObject({
  verify_responses: z.array(z.record(z.string(), z.unknown())),
});

type Figures = Record<string, number>;

export interface AggregateMetrics {
  readonly group_level_metrics: readonly Figures[];
  readonly agent_metrics: Figures;
  readonly key_metrics: Figures;
}

const taskKey = "_ng_task_index";

export function aggregated({ verify_responses: rows }: FiguresRequest): AggregateMetrics {
  const byTask = Map.groupBy(rows, (row) => Number(row[taskKey] ?? 0));
  const tasks = [...byTask].toSorted(([a], [b]) => a - b);
  const all = figuresOf(rows);
  const means = Object.entries(all).filter(([name]) => name.startsWith("mean/"));
  return {
    group_level_metrics: tasks.map(([task, of]) => ({ ...figuresOf(of), [taskKey]: task })),
    agent_metrics: all,
    key_metrics: Object.fromEntries(means),
  };
}

function figuresOf(rows: readonly Row[]): Figures {
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  const figures: Figures = {};
  for (const name of names) {
    if (name.startsWith("_ng_")) continue;
    const values = rows
      .map((row) => row[name])
      .filter((value) => typeof value === "number" || typeof value === "boolean")
      .map(Number);
    if (values.length > 0) Object.assign(figures, statisticsOf(name, values));
  }
  return figures;
}

/** The deviation is that of a sample, as pandas has it; of one value it is 0. */
function statisticsOf(name: string, values: readonly number[]): Figures {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  const mean = sorted.reduce((sum, value) => sum + value, 0) / count;
  const middle = (at: number): number => sorted[at] ?? 0;
  const squares = sorted.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    [`mean/${name}`]: mean,
    [`max/${name}`]: middle(count - 1),
    [`min/${name}`]: middle(0),
    [`median/${name}`]: (middle(Math.floor((count - 1) / 2)) + middle(Math.floor(count / 2))) / 2,
    [`std/${name}`]: count === 1 ? 0 : Math.sqrt(squares / (count - 1)),
  };
}
