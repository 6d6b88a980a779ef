/** The other end of threads.ts. */
import { expose } from "threads/worker";
import type { ThreadsAdder } from "./threads.ts";

const adder: ThreadsAdder = { add: (a, b) => a + b };

expose(adder);
