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
import { First } from "./first-actor.ts";

/** The thing that is made: an actor in a host of its own, or nothing but the thread or process. */
export type HostKind = (typeof hostKinds)[number];

const hostKinds = ["thread", "thread, spares", "process", "bare thread", "bare process"] as const;

export interface FirstCalls {
  /** From nothing to each one's first answer; of all together, one number. */
  readonly ms: readonly number[];
  /** CPU time a host of this process with its threads, and so not of processes that it makes. */
  readonly cpuMs: number;
  /** Resident memory a host, of this process. */
  readonly megabytes: number;
}

/** What was made lives until the end, as actors do that somebody uses. */
const kept: unknown[] = [];

async function first(kind: HostKind): Promise<void> {
  if (kind === "bare thread") {
    const worker = new Worker(answering, { eval: true });
    kept.push(worker);
    return void (await once(worker, "message"));
  }
  if (kind === "bare process")
    return void (await once(spawn(process.execPath, ["-e", "0"]), "exit"));
  const actor = First.options({ isolation: kind === "process" ? "process" : "thread" }).remote();
  kept.push(actor);
  await ray.get(actor.add.remote(1, 2));
}

const answering = `const { parentPort } = require("node:worker_threads");
  parentPort.on("message", () => undefined);
  parentPort.postMessage(3);`;

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

if (import.meta.main) {
  const [, , asked, count, together] = process.argv;
  const kind = hostKinds.find((one) => one === asked);
  if (kind === undefined) throw new TypeError(`a host is one of ${hostKinds.join(", ")}`);
  const hosts = Number(count);
  await ray.init({ numCpus: hosts + 1, ...(kind === "thread, spares" ? {} : { prewarm: 0 }) });
  // The first finds no compiled code.
  await first(kind);
  const before = cpuMs();
  const bytes = process.memoryUsage.rss();
  const ms: number[] = [];
  const start = performance.now();
  if (together === "together") {
    await Promise.all(Array.from({ length: hosts }, () => first(kind)));
    ms.push(performance.now() - start);
  } else {
    for (let made = 0; made < hosts; made++) {
      const began = performance.now();
      await first(kind);
      ms.push(performance.now() - began);
    }
  }
  const megabytes = (process.memoryUsage.rss() - bytes) / 1e6 / hosts;
  const calls: FirstCalls = { ms, cpuMs: (cpuMs() - before) / hosts, megabytes };
  console.log(JSON.stringify(calls));
  await ray.shutdown();
  process.exit();
}
