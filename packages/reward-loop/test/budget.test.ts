/** The budget of retries holds attempts back, and takes none away. */

import * as ray from "@rayling/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fixture, scoreTexts } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const reward = fixture("flaky.ts");

test("all samples that would pass at their second attempt do, by the standard", async () => {
  const texts = Array.from({ length: 300 }, (_, n) => `one${n} 1 503`);
  const options = { reward, retry: { attempts: 6, baseMs: 1 } };
  const outcomes = await scoreTexts(options, texts);
  expect(outcomes.filter(({ valid }) => !valid)).toEqual([]);
  expect(new Set(outcomes.map(({ attempts }) => attempts))).toEqual(new Set([2]));
});

test("what has no attempts left failed of its endpoint, not of the budget", async () => {
  const texts = Array.from({ length: 60 }, (_, n) => `more${n} 9 503`);
  const outcomes = await scoreTexts({ reward, retry: { attempts: 3, baseMs: 1 } }, texts);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ attempts: 3, error: { code: "SCORE_THREW", status: 503 } });
  }
});

test("only the deadline ends the wait, and the outcome says so", async () => {
  const texts = Array.from({ length: 30 }, (_, n) => `held${n} 9 503`);
  const retry = { attempts: 2, baseMs: 1000, budget: 0 };
  const outcomes = await scoreTexts({ reward, retry, totalTimeoutMs: 3000 }, texts);
  const held = outcomes.filter((one) => !one.valid && one.error.code === "RETRY_BUDGET");
  // Ten may go at once, and one each second.
  expect(held.length).toBeGreaterThan(5);
  for (const outcome of held) {
    expect(outcome).toMatchObject({
      attempts: 1,
      error: { status: 503, message: expect.stringContaining("not yet") as string },
    });
  }
  for (const outcome of outcomes) {
    if (!held.includes(outcome)) expect(outcome).toMatchObject({ error: { status: 503 } });
  }
});
