/**
 * piscina with one thread and its defaults, except `concurrentTasksPerWorker`: the default of 1
 * hands out one task at a time. 1,000 is where it was fastest here (calls/s at 1,000 in flight: 74
 * k with 1, 184 k with 64, 160 k with 256, 214 k with 1,000).
 */
import { Piscina } from "piscina";
import { type Addends, type Subject, sumOfPromises } from "../subject.ts";

const concurrentTasksPerWorker = 1000;

export async function piscinaSubject(): Promise<Subject> {
  const pool = new Piscina<Addends, number>({
    filename: new URL("./add-task.ts", import.meta.url).href,
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker,
  });
  await pool.run({ a: 1, b: 1 });
  return {
    kind: "blocking peer",
    name: "piscina, ct = 1,000",
    addOne: (a, b) => pool.run({ a, b }),
    addMany: (base, count) => sumOfPromises(count, (index) => pool.run({ a: base, b: index })),
    close: () => pool.destroy(),
  };
}
