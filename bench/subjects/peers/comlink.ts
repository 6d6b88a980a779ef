/**
 * comlink as its documentation shows it for Node: `wrap` of a worker through the node adapter.
 */
import { Worker } from "node:worker_threads";
import { releaseProxy, wrap } from "comlink";
import nodeEndpoint from "comlink/dist/esm/node-adapter.mjs";
import { type Subject, sumOfPromises } from "../subject.ts";

export interface ComlinkAdder {
  add(a: number, b: number): number;
}

export async function comlinkSubject(): Promise<Subject> {
  const worker = new Worker(new URL("./comlink-worker.ts", import.meta.url));
  const remote = wrap<ComlinkAdder>(nodeEndpoint(worker));
  const add = async (a: number, b: number): Promise<number> => remote.add(a, b);
  await add(1, 1);
  return {
    kind: "peer",
    name: "comlink",
    addOne: (a, b) => remote.add(a, b),
    addMany: (base, count) => sumOfPromises(count, (index) => remote.add(base, index)),
    async close() {
      remote[releaseProxy]();
      await worker.terminate();
    },
  };
}
