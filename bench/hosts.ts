/**
 * How long does it take until a new actor answers, in a thread and in a process, with core as it is
 * published and as it lies in the workspace, against a bare worker and a bare process? One after
 * the other, none standing ready, the cache of compiled code warm.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildCore } from "./measure/fresh.ts";
import { percentile } from "./measure/interleave.ts";
import { field, numbers } from "./measure/printed.ts";
import type { Progress, Report } from "./measure/report.ts";
import type { FirstCalls, HostKind } from "./subjects/first-call.ts";

export interface HostsPlan {
  readonly rounds: number;
  /** Hosts in a round. */
  readonly hosts: number;
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
  { name: "actor in a thread, workspace", kind: "thread", flags: [] },
  { name: "bare process", kind: "bare process", flags: [] },
  { name: "actor in a process, published", kind: "process", flags: built },
  { name: "actor in a process, workspace", kind: "process", flags: [] },
];

const program = join(import.meta.dirname, "subjects/first-call.ts");

export async function measureHosts({ rounds, hosts }: HostsPlan, say: Progress): Promise<Report> {
  await buildCore();
  const measured = subjects.map((subject): Subject & { readonly calls: FirstCalls[] } => ({
    ...subject,
    calls: [],
  }));
  for (let round = 0; round < rounds; round++) {
    for (const { name, kind, flags, calls } of measured) {
      say(`first call of a host: round ${round + 1}, ${name}`);
      const printed: unknown = JSON.parse(await node([...flags, program, kind, String(hosts)]));
      calls.push({ ms: numbers(field(printed, "ms")), cpuMs: Number(field(printed, "cpuMs")) });
    }
  }
  const rows = measured.map(({ name, kind, calls }) => {
    const ms = calls.flatMap((call) => call.ms).toSorted((a, b) => a - b);
    const cpu = calls.map(({ cpuMs }) => cpuMs).toSorted((a, b) => a - b);
    const isOfThreads = kind.includes("thread");
    return [
      name,
      percentile(ms, 0.5).toFixed(1),
      percentile(ms, 0.9).toFixed(1),
      isOfThreads ? percentile(cpu, 0.5).toFixed(1) : "",
    ];
  });
  return {
    tables: [
      {
        title: "From nothing to the first answer of an actor",
        rows: [["", "p50 ms", "p90 ms", "CPU ms"], ...rows],
      },
    ],
    measured: {},
    details: measured,
  };
}

async function node(args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, args)).stdout;
}
