/**
 * Asks for many samples at once in a fresh process, and prints what each of them holds while it
 * waits.
 *
 *     node bench/rewards/held-samples.ts COUNT
 */
import * as ray from "@rayling/core";
import { heldBytes } from "./measures.ts";

await ray.init();
console.log(JSON.stringify(await heldBytes(Number(process.argv[2]))));
await ray.shutdown();
