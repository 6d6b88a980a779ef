/**
 * How long does it take until a new actor answers, in a thread and in a process, with core as it is
 * published and as it lies in the workspace, against a bare worker and a bare process? One after
 * the other, and many threads at once; none standing ready but in the row that says so, the cache
 * of compiled code warm. And how long until a session with a reward loop of two workers has its
 * first score, which takes three threads?
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildPackages } from "./measure/fresh.ts";
import { medianOf } from "./measure/figures.ts";
import { percentile } from "./measure/interleave.ts";
import { field, numbers } from "./measure/printed.ts";
import type { Progress, Report } from "./measure/report.ts";
import type { FirstCalls, HostKind } from "./subjects/first-call.ts";

export interface HostsPlan {
  readonly rounds: number;
  /** Hosts in a round, one after the other. */
  readonly hosts: number;
  /** Threads at once. */
  readonly together: number;
}

interface Subject {
  readonly name: string;
  readonly kind: HostKind;
  readonly flags: readonly string[];
}

const built = ["--conditions=built"];
const subjects: readonly Subject[] = [
  { name: "bare worker thread", kind: "bare thread", flags: [] },
  { name: "actor in a thread, published", kind: "thread", flags: built },
  { name: "the same, spare threads as by default", kind: "thread, spares", flags: built },
  { name: "actor in a thread, workspace", kind: "thread", flags: [] },
  { name: "bare process", kind: "bare process", flags: [] },
  { name: "actor in a process, published", kind: "process", flags: built },
  { name: "actor in a process, workspace", kind: "process", flags: [] },
];

const program = join(import.meta.dirname, "subjects/first-call.ts");
const loops = join(import.meta.dirname, "subjects/first-score.ts");
/** In the order in which they are built. */
const ofLoop = ["core", "config-tree", "data-proto", "reward-manager-registry", "reward-loop"];

export async function measureHosts(plan: HostsPlan, say: Progress): Promise<Report> {
  const { rounds, hosts, together } = plan;
  await buildPackages(...ofLoop);
  const measured = subjects.map((subject) => ({ ...subject, calls: new Array<FirstCalls>() }));
  const atOnce = subjects
    .filter(({ kind, flags }) => kind === "bare thread" || (kind === "thread" && flags === built))
    .map((subject) => ({ ...subject, calls: new Array<FirstCalls>() }));
  // Threads write the cache of compiled code when they end.
  for (const { kind, flags } of subjects) await firstCalls(flags, kind, "1");
  const scored: FirstCalls[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`first score of a reward loop: round ${round + 1}`);
    scored.push(await printedCalls([...built, loops, String(Math.ceil(hosts / 2))]));
    for (const { name, kind, flags, calls } of measured) {
      say(`first call of a host: round ${round + 1}, ${name}`);
      calls.push(await firstCalls(flags, kind, String(hosts)));
    }
    for (const { name, kind, flags, calls } of atOnce) {
      say(`${together} hosts at once: round ${round + 1}, ${name}`);
      calls.push(await firstCalls(flags, kind, String(together), "together"));
    }
  }
  const times = measured.map(({ name, calls }) => ({ name, ms: calls.flatMap(({ ms }) => ms) }));
  const bare = medianOf(times[0]?.ms ?? []);
  const rows = measured.map(({ name, kind, calls }) => {
    const ms = calls.flatMap((call) => call.ms).toSorted((a, b) => a - b);
    const isOfThreads = kind.includes("thread");
    return [
      name,
      percentile(ms, 0.5).toFixed(1),
      percentile(ms, 0.9).toFixed(1),
      isOfThreads ? medianOf(calls.map(({ cpuMs }) => cpuMs)).toFixed(1) : "",
    ];
  });
  const scores = scored.flatMap(({ ms }) => ms).toSorted((a, b) => a - b);
  const many = atOnce.map(({ name, calls }) => [
    name,
    medianOf(calls.flatMap(({ ms }) => ms)).toFixed(0),
    medianOf(calls.map(({ cpuMs }) => cpuMs)).toFixed(1),
    medianOf(calls.map(({ megabytes }) => megabytes)).toFixed(1),
  ]);
  return {
    tables: [
      {
        title: "From nothing to the first answer of an actor",
        rows: [["", "p50 ms", "p90 ms", "CPU ms"], ...rows],
      },
      {
        title: `From nothing to the first answer of ${together} at once`,
        rows: [["", "ms for all", "CPU ms for one", "MB for one"], ...many],
      },
      {
        title: "From nothing to the first score",
        rows: [
          ["", "p50 ms", "p90 ms", "CPU ms"],
          [
            "session and reward loop of two workers, published",
            percentile(scores, 0.5).toFixed(0),
            percentile(scores, 0.9).toFixed(0),
            medianOf(scored.map(({ cpuMs }) => cpuMs)).toFixed(0),
          ],
        ],
      },
    ],
    measured: {
      "hosts: thread x bare": medianOf(times[1]?.ms ?? []) / bare,
    },
    details: measured,
  };
}

async function firstCalls(flags: readonly string[], ...args: string[]): Promise<FirstCalls> {
  return await printedCalls([...flags, program, ...args]);
}

async function printedCalls(args: readonly string[]): Promise<FirstCalls> {
  const printed: unknown = JSON.parse(await node(args));
  return {
    ms: numbers(field(printed, "ms")),
    cpuMs: Number(field(printed, "cpuMs")),
    megabytes: Number(field(printed, "megabytes")),
  };
}

async function node(args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, args)).stdout;
}
