/**
 * threads.js as its documentation shows it: `spawn` of a worker that exposes an object.
 */
import { spawn, Thread, Worker } from "threads";
import { type Subject, sumOfPromises } from "../subject.ts";

export interface ThreadsAdder {
  add(a: number, b: number): number;
}

export async function threadsSubject(): Promise<Subject> {
  const worker = new Worker("./threads-worker.ts");
  // It adds a listener for each call in flight, and Node warns from the eleventh on.
  worker.setMaxListeners(0);
  const remote = await spawn<ThreadsAdder>(worker);
  const add = (a: number, b: number): Promise<number> => remote.add(a, b);
  await add(1, 1);
  return {
    kind: "peer",
    name: "threads",
    addOne: add,
    addMany: (base, count) => sumOfPromises(count, (index) => add(base, index)),
    close: () => Thread.terminate(remote),
  };
}
