/** The other end of plain.ts. */
import { parentPort } from "node:worker_threads";
import { hash, type Item } from "./work.ts";

parentPort?.on("message", (item: Item) => parentPort?.postMessage(hash(item)));
