/**
 * The floor for one call at a time: `{ id, a, b }` over a MessagePort, `{ id, result }` back, one
 * message per call, a promise per call in a map.
 *
 * What any RPC over threads costs at least as long as it posts each call by itself.
 */
import { MessageChannel, Worker } from "node:worker_threads";
import { type Subject, sumOfPromises } from "../subject.ts";

export const portName = "raw postMessage";

export interface RawCall {
  readonly id: number;
  readonly a: number;
  readonly b: number;
}

export interface RawResult {
  readonly id: number;
  readonly result: number;
}

export async function rawPortSubject(): Promise<Subject> {
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL("./port-worker.ts", import.meta.url), {
    workerData: port2,
    transferList: [port2],
  });
  const pending = new Map<number, (result: number) => void>();
  let nextId = 0;
  port1.on("message", ({ id, result }: RawResult) => {
    const resolve = pending.get(id);
    pending.delete(id);
    resolve?.(result);
  });
  const add = (a: number, b: number): Promise<number> =>
    new Promise((resolve) => {
      const id = nextId++;
      pending.set(id, resolve);
      port1.postMessage({ id, a, b } satisfies RawCall);
    });
  await add(1, 1);
  return {
    kind: "floor",
    name: portName,
    addOne: add,
    addMany: (base, count) => sumOfPromises(count, (index) => add(base, index)),
    async close() {
      port1.close();
      await worker.terminate();
    },
  };
}
