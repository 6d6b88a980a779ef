/**
 * Opens reward loops of one function one after the other, and prints what each took until its first
 * score. `create` is timed with it: it starts the threads.
 *
 * A program of its own, because whether the packages are the published ones is decided when a
 * process starts (`--conditions=built`).
 */
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { FirstCalls } from "./first-call.ts";

const module = new URL("judged.ts", import.meta.url).href;

async function firstScore(): Promise<RewardLoopManager> {
  const loop = await RewardLoopManager.create({ workers: 2, reward: `${module}:brief` });
  const outcome = await loop.computeScore({ dataSource: "bench", response: "1", groundTruth: "" });
  if (!outcome.valid) throw new Error(outcome.error.message);
  return loop;
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

if (import.meta.main) {
  const loops = Number(process.argv[2]);
  await ray.init({ numCpus: 2 });
  // The first finds no compiled code.
  await (await firstScore()).close();
  await ray.shutdown();
  const ms: number[] = [];
  const cpu: number[] = [];
  const bytes: number[] = [];
  for (let made = 0; made < loops; made++) {
    const [began, before, rss] = [performance.now(), cpuMs(), process.memoryUsage.rss()];
    await ray.init({ numCpus: 2 });
    const loop = await firstScore();
    ms.push(performance.now() - began);
    cpu.push(cpuMs() - before);
    bytes.push(process.memoryUsage.rss() - rss);
    await loop.close();
    await ray.shutdown();
  }
  const mean = (all: readonly number[]): number => all.reduce((sum, one) => sum + one) / loops;
  const calls: FirstCalls = { ms, cpuMs: mean(cpu), megabytes: mean(bytes) / 1e6 };
  console.log(JSON.stringify(calls));
  process.exit();
}
