/** What is cancelled of those who wait for scores. */

import * as ray from "@rayling/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ScoringActor } from "./fixtures/scoring-actor.ts";
import { fixture } from "./loop.ts";

beforeAll(() => ray.init());
afterAll(() => ray.shutdown());

test("a task that is cancelled takes no sample of others along", async () => {
  const actor = ScoringActor.remote();
  await ray.get(actor.open.remote(fixture("troublemaker.ts:inThread")));
  const channel = new BroadcastChannel("rayling in thread");
  const atWork = new Set<unknown>();
  channel.addEventListener("message", (event) => atWork.add((event as MessageEvent).data));
  try {
    const first = actor.score.remote("hold first");
    await expect.poll(() => atWork.has("hold first")).toBe(true);
    const second = actor.score.remote("hold second");
    await expect.poll(() => atWork.has("hold second")).toBe(true);
    ray.cancel(first, { recursive: true });
    await expect(ray.get(first)).rejects.toMatchObject({ code: "TASK_CANCELLED" });
    channel.postMessage("go on hold second");
    expect(await ray.get(second)).toBe(true);
    expect(await ray.get(actor.score.remote("another"))).toBe(true);
  } finally {
    channel.close();
    await ray.get(actor.close.remote());
    await ray.kill(actor);
  }
});
