/**
 * Where does the time of a call go? Drives one actor while Node profiles every thread, and reads
 * the profiles.
 *
 *     node --cpu-prof --cpu-prof-dir=out/profile bench/profile.ts many
 *     node bench/profile.ts read out/profile
 *
 * `many`: 1,000 calls in flight; `one`: one at a time. Node writes one profile per thread when it
 * ends; the lowest thread number is the driver.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { raylingSubject } from "./subjects/rayling.ts";

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const driveMs = 5000;
const shown = 20;

async function drive(count: number): Promise<void> {
  await ray.init({ prewarm: 0 });
  const subject = await raylingSubject();
  const start = performance.now();
  const cpu = process.cpuUsage();
  let calls = 0;
  while (performance.now() - start < driveMs) {
    await (count === 1 ? subject.addOne(calls, 1) : subject.addMany(calls, count));
    calls += count;
  }
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  console.log(
    `${Math.round(calls / seconds)} calls/s, ${((user + system) / calls).toFixed(2)} us of CPU per call`,
  );
  await subject.close();
  await ray.shutdown();
}

function read(folder: string): void {
  for (const file of readdirSync(folder).toSorted()) {
    const { busyMs, idleMs, selfMs } = selfTimes(
      JSON.parse(readFileSync(join(folder, file), "utf8")) as Profile,
    );
    console.log(`\n${file}: busy ${Math.round(busyMs)} ms, idle ${Math.round(idleMs)} ms`);
    for (const [place, ms] of [...selfMs].toSorted((a, b) => b[1] - a[1]).slice(0, shown)) {
      console.log(`${((100 * ms) / busyMs).toFixed(1).padStart(6)} %  ${place}`);
    }
  }
}

function selfTimes({ nodes, samples, timeDeltas }: Profile): {
  readonly busyMs: number;
  readonly idleMs: number;
  readonly selfMs: ReadonlyMap<string, number>;
} {
  const places = new Map(nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  const selfMs = new Map<string, number>();
  let [busyMs, idleMs] = [0, 0];
  for (const [index, id] of samples.entries()) {
    const place = places.get(id) ?? "unknown";
    const ms = (timeDeltas[index + 1] ?? 0) / 1000;
    if (place === "(idle)") {
      idleMs += ms;
    } else {
      busyMs += ms;
      selfMs.set(place, (selfMs.get(place) ?? 0) + ms);
    }
  }
  return { busyMs, idleMs, selfMs };
}

function placeOf({ functionName, url, lineNumber }: Profile["nodes"][number]["callFrame"]): string {
  const file = url.split("/").slice(-2).join("/");
  return file === ""
    ? functionName
    : `${functionName === "" ? "anonymous" : functionName}  ${file}:${lineNumber + 1}`;
}

const [mode, folder] = process.argv.slice(2);
if (mode === "many" || mode === "one") await drive(mode === "one" ? 1 : 1000);
else if (mode === "read" && folder !== undefined) read(folder);
else {
  console.error("node bench/profile.ts many | one | read FOLDER");
  process.exitCode = 2;
}
