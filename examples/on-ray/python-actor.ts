// rayling run --on-ray http://127.0.0.1:8265 examples/on-ray/python-actor.ts
//
// A TypeScript driver calls a Python actor, which Ray runs: the class is in python/tally.py, and its
// folder comes along. An error in Python has its traceback as the cause.

import { join } from "node:path";
import * as ray from "rayling";

/** The methods of the class in Python, as this driver calls them. */
interface Tally {
  add(name: string, number: number): number;
  mean(name: string): { readonly name: string; readonly mean: number; readonly unit: string };
}

const workingDir = join(import.meta.dirname, "python");

await ray.init();
const Tallies = ray.python<Tally>("tally:Tally").options({ workingDir, numCpus: 0.5 });
const tally = Tallies.remote("ms", ray.keywords({ digits: 1 }));
const added = [12, 15, 12.5].map((number) => tally.add.remote("latency", number));
console.log(`Python has ${(await ray.get(added)).at(-1)} numbers`);
const { mean, unit } = await ray.get(tally.mean.remote("latency"));
console.log(`their mean is ${mean} ${unit}`);
try {
  await ray.get(tally.mean.remote("throughput"));
} catch (error) {
  if (!(error instanceof ray.PythonTaskError)) throw error;
  console.log(error.message);
  const { cause } = error;
  if (!(cause instanceof ray.PythonError)) throw error;
  console.log(cause.traceback.split("\n").find((line) => line.includes("tally.py")));
}
await ray.shutdown();
