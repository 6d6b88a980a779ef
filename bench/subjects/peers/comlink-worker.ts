/** The other end of comlink.ts. */
import { parentPort } from "node:worker_threads";
import { expose } from "comlink";
import nodeEndpoint from "comlink/dist/esm/node-adapter.mjs";
import type { ComlinkAdder } from "./comlink.ts";

const adder: ComlinkAdder = { add: (a, b) => a + b };

if (parentPort !== null) expose(adder, nodeEndpoint(parentPort));
