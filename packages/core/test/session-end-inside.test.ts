import { afterEach, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Other, Witness } from "./fixtures/witness.ts";

afterEach(() => ray.shutdown());

test("what an actor waits for, and does later, ends with its session, while its host still lives", async () => {
  await ray.init({ numCpus: 4, prewarm: 0 });
  const [other, witness] = [Other.remote(), Witness.remote()];
  const told = new Int32Array(new SharedArrayBuffer(8));
  const pending = other.never.remote();
  ray.get(witness.see.remote([pending], told)).catch(() => undefined);
  for (let now = 0; now === 0; now = Atomics.load(told, 0)) {
    await Atomics.waitAsync(told, 0, 0).value;
  }
  expect([...told]).toEqual([14, 14]);
});
