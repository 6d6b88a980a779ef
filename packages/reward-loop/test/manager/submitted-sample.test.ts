/** A sample from its caller until it settles. */

import { expect, test, vi } from "vitest";
import type { SampleOutcome } from "../../src/outcome.ts";
import { SubmittedSample } from "../../src/pipeline/submitted-sample.ts";

const sample = { dataSource: "none", response: "1", groundTruth: null };
const outcome: SampleOutcome = {
  valid: true,
  rewardScore: 1,
  rewardExtraInfo: {},
  latencyMs: 0.1,
  attempts: 1,
  waitedMs: 0,
};
const owner = { budget: undefined, ran: vi.fn(), lost: vi.fn() };

test("that cannot be counted rejects with the reason, and throws nothing to who has settled it", async () => {
  const ends = {
    settled: (): never => {
      throw new RangeError("not to be counted");
    },
    rejected: vi.fn(),
  };
  const settled = new Promise<SampleOutcome>((resolve) => {
    const terms = { lane: "training", ends, owner };
    const submitted = new SubmittedSample(sample, terms, undefined, resolve);
    submitted.answered({ ...outcome }, "version");
    submitted.resolve(outcome);
  });
  await expect(settled).rejects.toThrow("not to be counted");
});

test("counts as a run only where it has run", () => {
  owner.ran.mockClear();
  const terms = { lane: "training", ends: undefined, owner };
  const of = (): SubmittedSample => new SubmittedSample(sample, terms, undefined, () => undefined);
  of().answered({ ...outcome }, "version");
  const error = { code: "SCORE_TIMEOUT", name: "TimeoutError", message: "in line" } as const;
  of().answered({ valid: false, error, latencyMs: 0, attempts: 0, waitedMs: 5 }, "version");
  of().answered({ valid: false, error, latencyMs: 7, attempts: 1, waitedMs: 0 }, "version");
  expect(owner.ran.mock.calls).toEqual([[0.1], [7]]);
});
