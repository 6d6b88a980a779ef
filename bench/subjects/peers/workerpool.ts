/**
 * workerpool with one thread. It hands out one task at a time and has no option for more: calls in
 * flight wait in its queue.
 */
import { fileURLToPath } from "node:url";
import workerpool from "workerpool";
import { type Subject, sumOfPromises } from "../subject.ts";

export async function workerpoolSubject(): Promise<Subject> {
  const pool = workerpool.pool(fileURLToPath(new URL("./workerpool-worker.ts", import.meta.url)), {
    workerType: "thread",
    minWorkers: 1,
    maxWorkers: 1,
  });
  const add = async (a: number, b: number): Promise<number> => pool.exec("add", [a, b]);
  await add(1, 1);
  return {
    kind: "peer",
    name: "workerpool",
    addOne: add,
    addMany: (base, count) => sumOfPromises(count, (index) => add(base, index)),
    async close() {
      await pool.terminate();
    },
  };
}
