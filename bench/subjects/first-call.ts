/**
 * Makes hosts one after the other and prints what each took until its first answer.
 *
 * A program of its own, because whether core is the one of the workspace or the published one is
 * decided when a process starts (`--conditions=built`).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import * as ray from "@rayling/core";

class FirstInstance {
  add(a: number, b: number): number {
    return a + b;
  }
}
const First: ray.ActorClass<typeof FirstInstance> = ray.remote(FirstInstance);

/** The thing that is made: an actor in a host of its own, or nothing but the thread or process. */
export type HostKind = (typeof hostKinds)[number];

const hostKinds = ["thread", "process", "bare thread", "bare process"] as const;

export interface FirstCalls {
  readonly ms: readonly number[];
  /** CPU time of this process with its threads, and so not of processes that it makes. */
  readonly cpuMs: number;
}

async function first(kind: HostKind): Promise<void> {
  if (kind === "bare thread") return void (await once(new Worker("0", { eval: true }), "exit"));
  if (kind === "bare process")
    return void (await once(spawn(process.execPath, ["-e", "0"]), "exit"));
  const actor = First.options({ isolation: kind }).remote();
  await ray.get(actor.add.remote(1, 2));
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

if (import.meta.main) {
  const [, , asked, count] = process.argv;
  const kind = hostKinds.find((one) => one === asked);
  if (kind === undefined) throw new TypeError(`a host is one of ${hostKinds.join(", ")}`);
  await ray.init({ numCpus: Number(count) + 1 });
  // The first finds no compiled code.
  await first(kind);
  const before = cpuMs();
  const ms: number[] = [];
  for (let made = 0; made < Number(count); made++) {
    const start = performance.now();
    await first(kind);
    ms.push(performance.now() - start);
  }
  const calls: FirstCalls = { ms, cpuMs: (cpuMs() - before) / ms.length };
  console.log(JSON.stringify(calls));
  await ray.shutdown();
}
