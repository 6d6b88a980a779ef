/**
 * Question: what does one actor call cost, one at a time and with 64 and 1,000 in flight, against
 * what this machine allows and against peers?
 *
 * All subjects do the same work, add(a, b) on one other thread, in interleaved rounds of one run,
 * and every sum is checked.
 */
import {
  cpuRatio,
  figureOf,
  type Measured,
  ratioTo,
  type Section,
  tableOf,
} from "./measure/figures.ts";
import { interleave, type RoundPlan } from "./measure/interleave.ts";
import type { Progress, Report } from "./measure/report.ts";
import { comlinkSubject } from "./subjects/peers/comlink.ts";
import { piscinaSubject } from "./subjects/peers/piscina.ts";
import { poolifierSubject } from "./subjects/peers/poolifier.ts";
import { threadsSubject } from "./subjects/peers/threads.ts";
import { tinypoolSubject } from "./subjects/peers/tinypool.ts";
import { workerpoolSubject } from "./subjects/peers/workerpool.ts";
import { batchedName, rawBatchedSlotsSubject, rawBatchedSubject } from "./subjects/raw/batched.ts";
import {
  rawSocketSlotsSubject,
  rawSocketSubject,
  socketName,
} from "./subjects/raw/batched-socket.ts";
import { portName, rawPortSubject } from "./subjects/raw/port.ts";
import {
  processName,
  raylingName,
  raylingProcessSubject,
  raylingSubject,
} from "./subjects/rayling.ts";
import { expectedSum, type Subject } from "./subjects/subject.ts";

export const serial: Section = {
  id: "serial",
  title: "One call at a time",
  reading: "time",
  perIteration: 1,
  unit: "us",
  floors: [portName, socketName],
};

export const inFlight = (count: number): Section => ({
  id: `in-flight-${count}`,
  title: `${count.toLocaleString("en-US")} calls in flight`,
  reading: "rate",
  perIteration: count,
  unit: "ms",
  floors: [batchedName, socketName, portName],
});

type Start = () => Promise<Subject>;

/** In the order of the tables: the floors, Rayling, the peers. */
const starts: readonly Start[] = [
  rawPortSubject,
  rawBatchedSubject,
  rawBatchedSlotsSubject,
  rawSocketSubject,
  rawSocketSlotsSubject,
  raylingSubject,
  raylingProcessSubject,
  comlinkSubject,
  piscinaSubject,
  tinypoolSubject,
  workerpoolSubject,
  threadsSubject,
  poolifierSubject,
];

/** Call it inside a session. */
export async function measureCalls(
  depths: readonly number[],
  plan: RoundPlan,
  say: Progress,
): Promise<Report> {
  const sections = depths.map((depth) => [depth, depth === 1 ? serial : inFlight(depth)] as const);
  return measureStarts(starts, sections, plan, say);
}

/** Starts the subjects, measures them, and ends them. */
export async function measureStarts(
  started: readonly Start[],
  wanted: readonly (readonly [depth: number, section: Section])[],
  plan: RoundPlan,
  say: Progress,
): Promise<Report> {
  const subjects: Subject[] = [];
  try {
    for (const start of started) subjects.push(await start());
    const sections = await measureSubjects(subjects, wanted, plan, say);
    return {
      tables: sections.map(tableOf),
      measured: Object.fromEntries(sections.flatMap((section) => ratiosOf(section, subjects))),
      details: sections,
    };
  } finally {
    await Promise.all(subjects.map((subject) => subject.close()));
  }
}

/** All subjects at each depth, in interleaved rounds. */
export async function measureSubjects(
  subjects: readonly Subject[],
  sections: readonly (readonly [depth: number, section: Section])[],
  plan: RoundPlan,
  say: Progress,
): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const [depth, section] of sections) {
    const work = depth === 1 ? addOne : addMany(depth);
    const contestants = subjects.map((subject) => ({ name: subject.name, run: work(subject) }));
    const samples = await interleave(contestants, plan, (round) =>
      say(`${section.title}: round ${round} of ${plan.rounds}`),
    );
    measured.push({ ...section, figures: samples.map(figureOf) });
  }
  return measured;
}

/** For targets.ts. */
export function ratiosOf(
  section: Measured,
  subjects: readonly { readonly name: string; readonly kind: string }[],
): [string, number][] {
  const { id, reading } = section;
  const floor = reading === "time" ? portName : batchedName;
  const named = (isOther: (subject: { readonly kind: string }) => boolean): ReadonlySet<string> =>
    new Set(subjects.filter(isOther).map(({ name }) => name));
  const peers = named(({ kind }) => kind === "peer" || kind === "blocking peer");
  const openPeers = named(({ kind }) => kind === "peer");
  const to = (name: string, others: ReadonlySet<string>): number =>
    ratioTo(section, name, (other) => others.has(other));
  const ratios: [string, number][] = [
    [`${id}: thread x raw`, to(raylingName, new Set([floor]))],
    [`${id}: thread x best peer`, to(raylingName, peers)],
    [`${id}: thread x best open peer`, to(raylingName, openPeers)],
    [`${id}: thread CPU x raw`, cpuRatio(section, raylingName, floor)],
    [`${id}: process x raw`, to(processName, new Set([socketName]))],
  ];
  // A section may have no actor in a process.
  return ratios.filter(([, ratio]) => !Number.isNaN(ratio));
}

type Work = (subject: Subject) => () => Promise<void>;

function addOne(subject: Subject): () => Promise<void> {
  let a = 0;
  return async () => {
    a += 1;
    verify(subject, await subject.addOne(a, 1), a + 1);
  };
}

function addMany(count: number): Work {
  return (subject) => {
    let base = 0;
    return async () => {
      base += 1;
      verify(subject, await subject.addMany(base, count), expectedSum(base, count));
    };
  };
}

function verify(subject: Subject, found: number, expected: number): void {
  if (found !== expected)
    throw new Error(`${subject.name} answered ${found} in place of ${expected}`);
}
