/** Two hosts that cannot reach each other any more, and live: whoever knows of their deaths has none to tell. */
import { afterAll, beforeAll, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Neighbour } from "./fixtures/neighbour.ts";

beforeAll(() => ray.init({ numCpus: 4, prewarm: 0, isolation: "process" }));
afterAll(() => ray.shutdown());

test("a call that was under way fails as one to somebody who cannot be reached, and the next one finds a new way", async () => {
  const [left, right] = [Neighbour.remote(), Neighbour.remote()];
  const told = await ray.get(left.loses.remote(right, 0));
  expect(told).toMatch(/^ActorUnavailableError: .*the cable was cut/);
  expect(await ray.get(left.ask.remote(right))).toBe(4);
});

test("a call that may be tried again goes over the new way, to the same life", async () => {
  const [left, right] = [Neighbour.remote(), Neighbour.remote()];
  expect(await ray.get(left.loses.remote(right, 1))).toBe(4);
});
