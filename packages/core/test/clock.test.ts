/** The clock that all threads share: what one notes can be compared with what another does. */

import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { clockMs } from "../src/shared/clock.ts";

/** The least of many readings: none of them was held up between the two clocks. */
function errorMs(): number {
  const errors = Array.from({ length: 200 }, () =>
    Math.abs(clockMs() - Number(process.hrtime.bigint()) / 1e6),
  );
  return Math.min(...errors);
}

test("it is the machine's monotonic clock", () => {
  expect(errorMs()).toBeLessThan(0.1);
});

test("in every thread, also in those that start while others have the CPU", async () => {
  const clock = new URL("../src/shared/clock.ts", import.meta.url).href;
  const source = `
    import { parentPort } from "node:worker_threads";
    const { clockMs } = await import(${JSON.stringify(clock)});
    const errors = Array.from({ length: 200 }, () => Math.abs(clockMs() - Number(process.hrtime.bigint()) / 1e6));
    parentPort.postMessage(Math.min(...errors));`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const errors = await Promise.all(
    Array.from(
      { length: 12 },
      () => new Promise<number>((resolve) => void new Worker(url).once("message", resolve)),
    ),
  );
  expect(Math.max(...errors)).toBeLessThan(0.1);
});
