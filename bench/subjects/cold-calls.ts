/**
 * Makes the first calls of a fresh process with one subject, checks every sum, and prints the times
 * and the CPU time.
 *
 *     node bench/subjects/cold-calls.ts SUBJECT DEPTH ITERATIONS
 *
 * An iteration is one call, or `DEPTH` calls in flight. A subject is loaded only when it starts, so
 * that the process holds no other library.
 */
import { expectedSum, type Subject } from "./subject.ts";

/** In the order of the tables: the floors, Rayling, the peers. */
export const coldSubjects: Readonly<Record<string, () => Promise<Subject>>> = {
  port: async () => (await import("./raw/port.ts")).rawPortSubject(),
  batched: async () => (await import("./raw/batched.ts")).rawBatchedSubject(),
  async rayling() {
    const ray = await import("@rayling/core");
    await ray.init();
    return (await import("./rayling.ts")).raylingSubject();
  },
  comlink: async () => (await import("./peers/comlink.ts")).comlinkSubject(),
  piscina: async () => (await import("./peers/piscina.ts")).piscinaSubject(),
  workerpool: async () => (await import("./peers/workerpool.ts")).workerpoolSubject(),
  poolifier: async () => (await import("./peers/poolifier.ts")).poolifierSubject(),
};

export interface FirstIterations {
  readonly name: string;
  readonly kind: Subject["kind"];
  /** Time of each iteration. */
  readonly ms: readonly number[];
  /** CPU time of the process with all its threads, per iteration. */
  readonly cpuMs: number;
}

async function measure(
  subject: Subject,
  depth: number,
  iterations: number,
): Promise<FirstIterations> {
  const ms: number[] = [];
  const before = process.cpuUsage();
  for (let base = 1; base <= iterations; base++) {
    const startMs = performance.now();
    const sum = await (depth === 1 ? subject.addOne(base, 0) : subject.addMany(base, depth));
    ms.push(performance.now() - startMs);
    if (sum !== expectedSum(base, depth)) throw new Error(`${subject.name} answered ${sum}`);
  }
  const { user, system } = process.cpuUsage(before);
  const { name, kind } = subject;
  return { name, kind, ms, cpuMs: (user + system) / 1000 / iterations };
}

if (import.meta.main) {
  const [asked = "", depth, iterations] = process.argv.slice(2);
  const start = coldSubjects[asked];
  if (start === undefined) throw new TypeError(`no subject is named ${asked}`);
  const subject = await start();
  const printed = JSON.stringify(await measure(subject, Number(depth), Number(iterations)));
  await subject.close();
  // The session of Rayling ends with the process, and a pipe takes 64 KiB at a time.
  process.stdout.write(printed, () => process.exit());
}
