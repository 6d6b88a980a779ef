/**
 * poolifier's fixed pool with one thread and its defaults: tasks go to the worker at once, as many
 * as come.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { FixedThreadPool } from "poolifier";
import { type Addends, type Subject, sumOfPromises } from "../subject.ts";

export async function poolifierSubject(): Promise<Subject> {
  const file = fileURLToPath(new URL("./poolifier-worker.ts", import.meta.url));
  const pool = new FixedThreadPool<Addends, number>(1, file);
  await pool.execute({ a: 1, b: 1 });
  return {
    kind: "peer",
    name: "poolifier",
    addOne: (a, b) => pool.execute({ a, b }),
    addMany: (base, count) => sumOfPromises(count, (index) => pool.execute({ a: base, b: index })),
    // It unrefs its workers before it waits for their end, and now and then waits for ever: a
    // second is enough for one thread.
    close: () => Promise.race([pool.destroy(), sleep(1000)]),
  };
}
