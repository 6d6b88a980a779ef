/**
 * Question: what do the first calls of a process cost, against the floors and the peers?
 *
 * Each figure is of fresh processes that hold one subject alone: the first 1,000 calls one at a
 * time, and in other processes the first 20 batches of 1,000 in flight. Compilation counts.
 * Processes of all subjects take turns.
 */
import { inFlight, ratiosOf, serial } from "./calls.ts";
import { figureOf, type Measured, type Section, tableOf } from "./measure/figures.ts";
import { buildCore, fresh } from "./measure/fresh.ts";
import type { Round } from "./measure/interleave.ts";
import { field, numbers, text } from "./measure/printed.ts";
import type { Progress, Report } from "./measure/report.ts";
import { coldSubjects } from "./subjects/cold-calls.ts";
import { batchedName } from "./subjects/raw/batched.ts";
import { portName } from "./subjects/raw/port.ts";

export interface ColdPlan {
  /** Fresh processes of each subject and depth. */
  readonly processes: number;
  readonly calls: number;
  readonly batches: number;
}

const program = new URL("./subjects/cold-calls.ts", import.meta.url);
const depth = 1000;

export async function measureCold(plan: ColdPlan, say: Progress): Promise<Report> {
  await buildCore();
  const processes = new Map<string, Process[]>(
    Object.keys(coldSubjects).map((subject) => [subject, []]),
  );
  for (let turn = 0; turn < plan.processes; turn++) {
    for (const [subject, all] of processes) {
      say(`first calls: process ${turn + 1} of ${plan.processes}, ${subject}`);
      const one = await firstIterations(subject, 1, plan.calls);
      const many = await firstIterations(subject, depth, plan.batches);
      all.push({ one, many });
    }
  }
  const subjects = [...processes.values()].flatMap(([first]) => first?.one ?? []);
  const all = [...processes.values()];
  const sections = [
    coldSerial(
      plan,
      all.map((ran) => ran.map(({ one }) => one)),
    ),
    coldInFlight(
      plan,
      all.map((ran) => ran.map(({ many }) => many)),
    ),
  ];
  return {
    tables: sections.map(tableOf),
    measured: Object.fromEntries(sections.flatMap((section) => ratiosOf(section, subjects))),
    details: sections,
  };
}

interface Process {
  readonly one: First;
  readonly many: First;
}

type First = Awaited<ReturnType<typeof firstIterations>>;

async function firstIterations(subject: string, inFlightNow: number, iterations: number) {
  const printed = await fresh(program, subject, String(inFlightNow), String(iterations));
  return {
    name: text(field(printed, "name")),
    kind: text(field(printed, "kind")),
    ms: numbers(field(printed, "ms")),
    cpuMs: Number(field(printed, "cpuMs")),
  };
}

/** A process is one sample: the mean of its calls, so that compilation counts. */
function coldSerial({ calls }: ColdPlan, subjects: readonly (readonly First[])[]): Measured {
  const section: Section = {
    ...serial,
    id: "cold, serial",
    title: `The first ${calls.toLocaleString("en-US")} calls of a process, one at a time`,
    floors: [portName],
  };
  return measuredOf(section, subjects, ({ ms }) => [meanOf(ms)]);
}

function coldInFlight({ batches }: ColdPlan, subjects: readonly (readonly First[])[]): Measured {
  const section: Section = {
    ...inFlight(depth),
    id: "cold, in-flight",
    title: `The first ${batches} batches of 1,000 calls in flight of a process`,
    floors: [batchedName, portName],
  };
  return measuredOf(section, subjects, ({ ms }) => ms);
}

function measuredOf(
  section: Section,
  subjects: readonly (readonly First[])[],
  samplesOf: (process: First) => readonly number[],
): Measured {
  const figures = subjects.map((processes) => {
    const rounds = processes.map(({ ms, cpuMs }): Round => {
      const mean = meanOf(ms);
      return { medianMs: mean, meanMs: mean, cpuMs };
    });
    const sortedMs = processes.flatMap(samplesOf).toSorted((a, b) => a - b);
    return figureOf({ name: processes[0]?.name ?? "", sortedMs, rounds });
  });
  return { ...section, figures };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
