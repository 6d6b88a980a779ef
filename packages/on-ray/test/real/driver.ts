/** A driver in a process of its own, which tests kill: it prints a line when all runs. */
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { Counter, spin } from "../../../../test/fixtures/on-cluster.ts";

enableOnRay();
await ray.init();
const counter = Counter.options({ numCpus: 1 }).remote();
await ray.get(counter.pid.remote());
const spinning = spin.remote();
// Held, or the task would be cancelled.
process.on("exit", () => spinning);
console.log(`runs ${await ray.get(counter.pid.remote())}`);
setInterval(() => undefined, 1000);
