/**
 * A run as a trace in Chrome's JSON format, for Perfetto (ui.perfetto.dev): phases on a line for
 * each track, and samples from their last token over their score to the update that learned from
 * them, joined by arrows. If there are many samples, an equal number is drawn for each step.
 */

import { join } from "node:path";
import type { TraceEvent } from "@rayling/core";
import { present } from "@rayling/reward-manager-registry/values";
import { readRun } from "../files/run-files.ts";
import { runFiles } from "../files/run-lines.ts";
import type { RunRecord } from "../files/run-files.ts";
import type { PhaseLine, SampleLine } from "../files/run-lines.ts";
import { writeWhole } from "../files/write-whole.ts";
import { lanesOf } from "./lanes.ts";
import type { Span } from "./lanes.ts";

/** An event of core's traces, or the middle of an arrow. */
export type TrainingTraceEvent = Omit<TraceEvent, "ph"> & { readonly ph: TraceEvent["ph"] | "t" };

/** Files of a trace. */
export interface TraceOptions {
  /** Folder of the run, with the files of the logger `file`. */
  readonly directory: string;
  /** Default `trace.json` in the folder. */
  readonly path?: string;
}

/** The largest number of samples of a run: more make a viewer slow. */
const mostSamples = 20_000;

const processes = { training: 1, waiting: 2, rewards: 3 } as const;
type Process = (typeof processes)[keyof typeof processes];

interface Slice extends Span {
  readonly name: string;
  readonly category: string;
  readonly args: Readonly<Record<string, unknown>>;
}

interface Place {
  readonly pid: Process;
  readonly tid: number;
  readonly startMs: number;
}

/**
 * Writes the trace, and returns its path. Rejects with TrackingError TRACKING_FILES where no run
 * was logged, or it cannot be written.
 */
export async function writeTrace({ directory, path }: TraceOptions): Promise<string> {
  const events = traceOf(await readRun(directory));
  return writeWhole(path ?? join(directory, runFiles.trace), jsonLines(events));
}

/** Times in microseconds from the first of all. */
export function traceOf(run: Pick<RunRecord, "phases" | "samples">): readonly TrainingTraceEvent[] {
  const samples = thinned(run.samples);
  const trace = new Trace(baseOf(run.phases, samples));
  trace.process(processes.training, "training");
  const byTrack = Map.groupBy(run.phases, ({ track }) => track ?? "trainer");
  const updates: { readonly phase: PhaseLine; readonly place: Place }[] = [];
  for (const [track, phases] of byTrack) {
    const places = trace.lanes(processes.training, track, phases.map(phaseSlice));
    for (const [index, phase] of phases.entries()) {
      if (phase.name.startsWith("update"))
        updates.push({ phase, place: present(places[index], `the place of ${phase.name}`) });
    }
  }
  trace.process(processes.waiting, "samples that wait for a score");
  const waiting = trace.lanes(processes.waiting, "waiting", samples.map(waitingSlice));
  trace.process(processes.rewards, "rewards");
  const scored = trace.lanes(processes.rewards, "score", samples.map(scoreSlice));
  for (const [index, sample] of samples.entries()) {
    const learned = updateOf(sample, updates);
    const way = [present(waiting[index], sample.id), present(scored[index], sample.id)];
    trace.arrow(sample.id, learned === undefined ? way : [...way, learned]);
  }
  return trace.events;
}

class Trace {
  readonly events: TrainingTraceEvent[] = [];
  readonly #baseMs: number;
  #tids = 0;
  #arrows = 0;

  constructor(baseMs: number) {
    this.#baseMs = baseMs;
  }

  process(pid: Process, name: string): void {
    this.events.push({ ph: "M", name: "process_name", pid, tid: 0, args: { name } });
    this.events.push({
      ph: "M",
      name: "process_sort_index",
      pid,
      tid: 0,
      args: { sort_index: pid },
    });
  }

  /** Returns where each slice went, in their order. */
  lanes(pid: Process, name: string, slices: readonly Slice[]): readonly Place[] {
    const places = new Map<Slice, Place>();
    for (const [lane, own] of lanesOf(slices, { mayNest: pid === processes.training }).entries()) {
      const tid = (this.#tids += 1);
      const laneName = lane === 0 ? name : `${name} (${lane + 1})`;
      this.events.push({ ph: "M", name: "thread_name", pid, tid, args: { name: laneName } });
      for (const slice of own) {
        places.set(slice, { pid, tid, startMs: slice.startMs });
        this.#slice(slice, pid, tid);
      }
    }
    return slices.map((slice) => present(places.get(slice), name));
  }

  /** From each place to the next. */
  arrow(name: string, places: readonly Place[]): void {
    const id = (this.#arrows += 1);
    for (const [index, { pid, tid, startMs }] of places.entries()) {
      const ph = index === 0 ? "s" : index === places.length - 1 ? "f" : "t";
      const end = ph === "s" ? {} : { bp: "e" as const };
      this.events.push({ ph, name, cat: "sample", id, ...end, pid, tid, ts: this.#us(startMs) });
    }
  }

  #slice({ name, category, startMs, endMs, args }: Slice, pid: Process, tid: number): void {
    const ts = this.#us(startMs);
    // An arrow cannot point to a slice without a duration.
    const dur = Math.max(0.001, Number((this.#us(endMs) - ts).toFixed(3)));
    this.events.push({ ph: "X", name, cat: category, pid, tid, ts, dur, args });
  }

  /** Microseconds, to the nanosecond. */
  #us(ms: number): number {
    return Math.round((ms - this.#baseMs) * 1e6) / 1000;
  }
}

function phaseSlice({ step, name, startMs, endMs }: PhaseLine): Slice {
  return { name, category: "phase", startMs, endMs, args: { step } };
}

function waitingSlice({ id, step, generatedMs, startedMs }: SampleLine): Slice {
  const args = { id, step };
  return { name: "wait", category: "sample", startMs: generatedMs, endMs: startedMs, args };
}

function scoreSlice({ id, step, startedMs, scoredMs, valid, attempts }: SampleLine): Slice {
  const args = { id, step, valid, attempts };
  const name = valid ? "score" : "failed";
  return { name, category: "reward", startMs: startedMs, endMs: scoredMs, args };
}

/** The first update of its step that was not over when the sample was used: it learned from it. */
function updateOf(
  { step, usedMs }: SampleLine,
  updates: readonly { readonly phase: PhaseLine; readonly place: Place }[],
): Place | undefined {
  if (usedMs === null) return undefined;
  const own = updates.filter(({ phase }) => phase.step === step && phase.endMs > usedMs);
  return own.toSorted((a, b) => a.phase.startMs - b.phase.startMs)[0]?.place;
}

function thinned(samples: readonly SampleLine[]): readonly SampleLine[] {
  if (samples.length <= mostSamples) return samples;
  return Array.from({ length: mostSamples }, (_, index) =>
    present(samples[Math.floor((index * samples.length) / mostSamples)], `sample ${index}`),
  );
}

function baseOf(phases: readonly PhaseLine[], samples: readonly SampleLine[]): number {
  let base = Infinity;
  for (const { startMs } of phases) base = Math.min(base, startMs);
  for (const { generatedMs } of samples) base = Math.min(base, generatedMs);
  return base;
}

function* jsonLines(events: readonly TrainingTraceEvent[]): Generator<string, void, undefined> {
  for (const [index, event] of events.entries()) {
    yield `${index === 0 ? "[" : ",\n"}${JSON.stringify(event)}`;
  }
  yield events.length === 0 ? "[]" : "]\n";
}
