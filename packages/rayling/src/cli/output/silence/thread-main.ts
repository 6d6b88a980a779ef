/** The thread of silence.ts: sleeps until two seconds without output would be over. */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import {
  goingOn,
  lineBreaker,
  nowMs,
  pipedLine,
  place,
  quietMs,
  textStart,
  timePlace,
  timesStart,
} from "./shared-line.ts";
import type { SilenceMemory } from "./shared-line.ts";

const { memory } = workerData as SilenceMemory;
const numbers = new Int32Array(memory, 0, timesStart / 4);
const times = new BigInt64Array(memory, timesStart, (textStart - timesStart) / 8);
const bytes = new Uint8Array(memory, textStart);
const numberOf = (name: keyof typeof place): number => Atomics.load(numbers, place[name]);
const timeOf = (name: keyof typeof timePlace): number =>
  Number(Atomics.load(times, timePlace[name]));

/** The least time to sleep, in ms. */
const leastMs = 20;
/** A line that is drawn counts its seconds. */
const redrawMs = 1000;

let spokenMs = -Infinity;
while (numberOf("isClosed") === 0) {
  const isTTY = numberOf("isTTY") === 1;
  const now = nowMs();
  const silentMs = isTTY ? quietMs.terminal : quietMs.pipe;
  const spokenDueMs = spokenMs + (isTTY ? redrawMs : quietMs.pipe);
  const dueMs = Math.max(timeOf("writtenMs") + silentMs, spokenDueMs);
  if (now < dueMs) Atomics.wait(numbers, place.isClosed, 0, Math.max(leastMs, dueMs - now));
  else if (numberOf("length") === 0) Atomics.wait(numbers, place.isClosed, 0, 100);
  else speak(now, isTTY);
}

function speak(atMs: number, isTTY: boolean): void {
  if (Atomics.compareExchange(numbers, place.lock, 0, 1) !== 0) {
    Atomics.wait(numbers, place.lock, 1, leastMs);
    return;
  }
  try {
    const isQuiet = atMs - timeOf("writtenMs") >= (isTTY ? quietMs.terminal : quietMs.pipe);
    if (isQuiet && numberOf("length") > 0 && numberOf("isClosed") === 0) write(atMs, isTTY);
  } finally {
    spokenMs = atMs;
    Atomics.store(numbers, place.lock, 0);
    Atomics.notify(numbers, place.lock);
  }
}

function write(atMs: number, isTTY: boolean): void {
  const text = Buffer.from(bytes.slice(0, numberOf("length"))).toString();
  const line = goingOn(text, atMs - timeOf("sinceMs"));
  const shown = isTTY
    ? `${lineBreaker}${line.slice(0, numberOf("columns") - 1)}`
    : `${pipedLine(line)}\n`;
  if (isTTY) Atomics.store(numbers, place.isDrawn, 1);
  try {
    writeSync(numberOf("fd"), shown);
    Atomics.store(times, timePlace.spokenMs, BigInt(atMs));
  } catch {
    // A full pipe, or nobody reads any more: the command itself reports what counts.
  }
}
