/** piscina with two threads, all else default. */
import { Piscina } from "piscina";
import type { HashSubject } from "./subjects.ts";
import type { Hashed, Item } from "./work.ts";

export async function piscinaHashing(threads: number): Promise<HashSubject> {
  const pool = new Piscina<Item, Hashed>({
    filename: new URL("./piscina-task.ts", import.meta.url).href,
    minThreads: threads,
    maxThreads: threads,
  });
  return {
    hashAll: (items) => Promise.all(items.map((item) => pool.run(item))),
    close: () => pool.destroy(),
  };
}
