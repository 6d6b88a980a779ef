/**
 * Question: what does a call cost beside other work that takes all CPUs?
 *
 * Two processes compute without a pause, at the priority of the benchmark, while the subjects take
 * part in interleaved rounds. Call it inside a session.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { inFlight, measureStarts, serial } from "./calls.ts";
import type { RoundPlan } from "./measure/interleave.ts";
import type { Progress, Report } from "./measure/report.ts";
import { comlinkSubject } from "./subjects/peers/comlink.ts";
import { piscinaSubject } from "./subjects/peers/piscina.ts";
import { poolifierSubject } from "./subjects/peers/poolifier.ts";
import { workerpoolSubject } from "./subjects/peers/workerpool.ts";
import { batchedName, rawBatchedSubject } from "./subjects/raw/batched.ts";
import { portName, rawPortSubject } from "./subjects/raw/port.ts";
import { raylingSubject } from "./subjects/rayling.ts";

const busyProcesses = 2;
const beside = `beside ${busyProcesses} busy processes`;

const starts = [
  rawPortSubject,
  rawBatchedSubject,
  raylingSubject,
  comlinkSubject,
  piscinaSubject,
  workerpoolSubject,
  poolifierSubject,
];

export async function measureCrowded(plan: RoundPlan, say: Progress): Promise<Report> {
  const [one, many] = [serial, inFlight(1000)];
  const crowd = Array.from({ length: busyProcesses }, busyProcess);
  try {
    return await measureStarts(
      starts,
      [
        [
          1,
          { ...one, id: "crowded, serial", title: `${one.title}, ${beside}`, floors: [portName] },
        ],
        [
          1000,
          {
            ...many,
            id: "crowded, in-flight",
            title: `${many.title}, ${beside}`,
            floors: [batchedName, portName],
          },
        ],
      ],
      plan,
      say,
    );
  } finally {
    await Promise.all(crowd.map(end));
  }
}

/** It ends by itself when its parent is gone. */
function busyProcess(): ChildProcess {
  const loop = `while (process.ppid === ${process.pid});`;
  return spawn(process.execPath, ["-e", loop], { stdio: ["ignore", "ignore", "inherit"] });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}
