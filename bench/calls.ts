/**
 * What does one actor call cost, one at a time and with 64 and 1,000 in flight, against what this machine allows and against peers?
 *
 * All subjects do the same work, add(a, b) on one other thread, in interleaved rounds of one run, and every sum is checked.
 */
import { figureOf, type Report, type Section } from "./measure/figures.ts";
import { interleave, type RoundPlan } from "./measure/interleave.ts";
import { comlinkSubject } from "./subjects/peers/comlink.ts";
import { piscinaSubject } from "./subjects/peers/piscina.ts";
import { poolifierSubject } from "./subjects/peers/poolifier.ts";
import { threadsSubject } from "./subjects/peers/threads.ts";
import { tinypoolSubject } from "./subjects/peers/tinypool.ts";
import { workerpoolSubject } from "./subjects/peers/workerpool.ts";
import { batchedName, rawBatchedSlotsSubject, rawBatchedSubject } from "./subjects/raw/batched.ts";
import { rawSocketSlotsSubject, rawSocketSubject } from "./subjects/raw/batched-socket.ts";
import { rawPortSubject } from "./subjects/raw/port.ts";
import { raylingSubject } from "./subjects/rayling.ts";
import { expectedSum, type Subject } from "./subjects/subject.ts";

const serial: Section = {
  id: "serial",
  title: "One call at a time",
  reading: "time",
  perIteration: 1,
  unit: "us",
  floors: ["raw postMessage"],
};

const inFlight = (count: number): Section => ({
  id: `in-flight-${count}`,
  title: `${count.toLocaleString("en-US")} calls in flight`,
  reading: "rate",
  perIteration: count,
  unit: "ms",
  floors: [batchedName, "raw postMessage"],
});

const inFlightCounts = [64, 1000];

/** In the order of the tables: the floors, Rayling, the peers. */
const starts: readonly (() => Promise<Subject>)[] = [
  rawPortSubject,
  rawBatchedSubject,
  rawBatchedSlotsSubject,
  rawSocketSubject,
  rawSocketSlotsSubject,
  raylingSubject,
  comlinkSubject,
  piscinaSubject,
  tinypoolSubject,
  workerpoolSubject,
  threadsSubject,
  poolifierSubject,
];

export interface CallsRequest {
  readonly serial: boolean;
  readonly inFlight: boolean;
  readonly plan: RoundPlan;
  readonly onRound: (title: string, round: number) => void;
}

export async function measureCalls(request: CallsRequest): Promise<Report[]> {
  const subjects: Subject[] = [];
  try {
    for (const start of starts) subjects.push(await start());
    const reports: Report[] = [];
    if (request.serial) reports.push(await measure(serial, subjects, addOne, request));
    for (const count of request.inFlight ? inFlightCounts : []) {
      reports.push(await measure(inFlight(count), subjects, addMany(count), request));
    }
    return reports;
  } finally {
    await Promise.all(subjects.map((subject) => subject.close()));
  }
}

type Work = (subject: Subject) => () => Promise<void>;

async function measure(
  section: Section,
  subjects: readonly Subject[],
  work: Work,
  { plan, onRound }: CallsRequest,
): Promise<Report> {
  const contestants = subjects.map((subject) => ({ name: subject.name, run: work(subject) }));
  const samples = await interleave(contestants, plan, (round) => onRound(section.title, round));
  return { ...section, figures: samples.map(figureOf) };
}

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
