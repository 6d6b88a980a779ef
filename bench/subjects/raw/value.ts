/**
 * The floors for one big result: a thread that answers each request with the same 1 MiB, cloned by
 * postMessage or copied into shared memory.
 *
 * "shared" is the least that an answer can cost which the receiver may keep while the sender goes
 * on changing its own.
 */
import { MessageChannel, Worker } from "node:worker_threads";

export type ValueRequest = "clone" | "share";

export interface RawValues {
  read(how: ValueRequest): Promise<Float64Array>;
  close(): Promise<void>;
}

export async function rawValues(elements: number): Promise<RawValues> {
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL("./value-worker.ts", import.meta.url), {
    workerData: { port: port2, elements },
    transferList: [port2],
  });
  const read = (how: ValueRequest): Promise<Float64Array> =>
    new Promise((resolve) => {
      port1.once("message", resolve);
      port1.postMessage(how);
    });
  await read("clone");
  return {
    read,
    async close() {
      port1.close();
      await worker.terminate();
    },
  };
}
