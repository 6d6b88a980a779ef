/**
 * tinypool with one thread and the same `concurrentTasksPerWorker` as piscina, from which it comes.
 */
import { Tinypool } from "tinypool";
import { type Subject, sumOfPromises } from "../subject.ts";

const concurrentTasksPerWorker = 1000;

export async function tinypoolSubject(): Promise<Subject> {
  const pool = new Tinypool({
    filename: new URL("./add-task.ts", import.meta.url).href,
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker,
  });
  const add = (a: number, b: number): Promise<number> => pool.run({ a, b });
  await add(1, 1);
  return {
    kind: "blocking peer",
    name: "tinypool, ct = 1,000",
    addOne: add,
    addMany: (base, count) => sumOfPromises(count, (index) => add(base, index)),
    close: () => pool.destroy(),
  };
}
