/** Which calls of a sample go out, where a test says what becomes of each. */

import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { timeoutFailure } from "../../src/outcome.ts";
import type { SampleOutcome, TokenUsage } from "../../src/outcome.ts";
import { readSettings } from "../../src/settings/settings.ts";
import { wholeUsageOf } from "../../src/spend/usage.ts";
import type { Job, SubmitOptions } from "../../src/worker/executors/job.ts";
import { ScoreAttempts } from "../../src/worker/score-attempts.ts";
import { Slots } from "../../src/worker/slots.ts";
import { sampleOf } from "../loop.ts";

interface Sent {
  readonly text: string;
  readonly options: SubmitOptions;
  /** How long it has been at work. */
  ageMs: number;
  readonly settle: (outcome: SampleOutcome) => void;
}

const failure = { code: "SCORE_THREW", name: "Error", message: "no" } as const;

/** One whose calls a test ends. */
function attemptsOf(given: RewardLoopOptions): { attempts: ScoreAttempts; sent: Sent[] } {
  const sent: Sent[] = [];
  const { policy } = readSettings(given);
  const attempts = new ScoreAttempts(policy, {
    limiter: undefined,
    slots: new Slots(1_000),
    onPause: () => undefined,
    giveUp: () => undefined,
    run: (sample, id, ends, options) => {
      const one: Sent = {
        text: typeof sample.response === "string" ? sample.response : "",
        options,
        ageMs: 0,
        settle: (outcome) => {
          options.call?.answered(outcome);
          ends.settled(outcome, id);
        },
      };
      if (options.pair !== undefined) {
        const job = { ageMs: () => one.ageMs } as Job;
        if (options.pair.first === undefined) options.pair.first = job;
        else options.pair.second = job;
      }
      sent.push(one);
    },
  });
  return { attempts, sent };
}

/** One that knows calls of 10 ms: the median. */
async function taught(budget: number): Promise<{ attempts: ScoreAttempts; sent: Sent[] }> {
  const { attempts, sent } = attemptsOf({ hedge: { quantile: 0.5, budget } });
  for (let n = 0; n < 100; n++) {
    const score = attempts.score(sampleOf("taught"), { lane: "training" });
    await turn();
    sent.pop()?.settle(valid);
    await score;
  }
  return { attempts, sent };
}

const valid: SampleOutcome = {
  valid: true,
  rewardScore: 1,
  rewardExtraInfo: {},
  latencyMs: 10,
  attempts: 1,
  waitedMs: 0,
};

test("a call that loses its executor after its second one went out takes no more of the budget", async () => {
  // What is saved is 1 and a share of 100 calls.
  const { attempts, sent } = await taught(0.015);
  const another = async (): Promise<void> => {
    const score = attempts.score(sampleOf("another"), { lane: "training" });
    await turn();
    sent.findLast(({ text }) => text === "another")?.settle(valid);
    await score;
  };
  const late = async (text: string): Promise<Sent> => {
    scores.push(attempts.score(sampleOf(text), { lane: "training" }));
    await turn();
    const first = sent.at(-1) as Sent;
    first.ageMs = 1000;
    await another();
    // When it is looked for: 10 ms after it was sent.
    await expect.poll(() => sent.filter((one) => one.text === text)).toHaveLength(2);
    return first;
  };
  const scores: Promise<{ readonly valid: boolean }>[] = [];
  const a = await late("a");
  for (let n = 0; n < 5; n++) {
    await a.options.call?.beforeAgain();
    await another();
  }
  await late("b");
  for (const one of sent) one.settle(valid);
  expect((await Promise.all(scores)).map((one) => one.valid)).toEqual([true, true]);
});

test("a call that has failed gets no second one", async () => {
  const { attempts, sent } = await taught(1);
  const scores = ["a", "b"].map((text) => attempts.score(sampleOf(text), { lane: "training" }));
  await turn();
  const [a, b] = sent as [Sent, Sent];
  a.ageMs = 1000;
  // In the same turn, as they come in one message.
  a.settle({ valid: false, error: failure, latencyMs: 1000, attempts: 1, waitedMs: 0 });
  b.settle(valid);
  await turn();
  expect(sent).toHaveLength(2);
  expect((await Promise.all(scores)).map((one) => one.valid)).toEqual([false, true]);
});

describe("both calls of a hedge are paid for, where both have answered", () => {
  const used = (totalTokens: number): { readonly used: TokenUsage } => ({
    used: { inputTokens: 0, outputTokens: totalTokens, totalTokens },
  });
  const useless = { ...valid, valid: false, error: failure } as const;

  test.each<[string, SampleOutcome, SampleOutcome]>([
    ["the second one has the score", { ...useless, ...used(7) }, { ...valid, ...used(1) }],
    ["the first one has the score", { ...valid, ...used(7) }, { ...useless, ...used(1) }],
    ["both have a score", { ...valid, ...used(7) }, { ...valid, ...used(1) }],
    ["none has a score", { ...useless, ...used(7) }, { ...useless, ...used(1) }],
  ])("%s", async (_, one, other) => {
    // In either order, and in one turn, as they come in one message.
    for (const order of [
      [0, 1],
      [1, 0],
    ] as const) {
      const { attempts, sent } = await taught(1);
      const score = attempts.score(sampleOf("late"), { lane: "training" });
      await turn();
      const [first] = sent;
      if (first !== undefined) first.ageMs = 1000;
      const callsOf = (): readonly Sent[] => sent.filter(({ text }) => text === "late");
      await expect.poll(callsOf).toHaveLength(2);
      const calls = callsOf();
      for (const at of order) calls[at]?.settle(at === 0 ? { ...one } : { ...other });
      const outcome = await score;
      expect(wholeUsageOf(outcome)?.totalTokens).toBe(8);
    }
  });
});

describe("a call that had no time left names the failure before it", () => {
  const late: SampleOutcome = { ...valid, valid: false, error: timeoutFailure(100) };
  const failed: SampleOutcome = { ...valid, valid: false, error: { ...failure, status: 503 } };
  const named = {
    code: "SCORE_TIMEOUT",
    message: `${timeoutFailure(100).message}; before that it failed: Error: no`,
    cause: { name: "Error", message: "no", status: 503 },
  };

  test("of the attempt before", async () => {
    const { attempts, sent } = attemptsOf({ retry: { attempts: 3, baseMs: 1, budget: Infinity } });
    const score = attempts.score(sampleOf("late"), { lane: "training" });
    for (const [at, outcome] of [failed, late, late].entries()) {
      await expect.poll(() => sent).toHaveLength(at + 1);
      sent[at]?.settle(outcome);
    }
    expect(await score).toMatchObject({ error: named });
  });

  test("of the other call of a hedge", async () => {
    const { attempts, sent } = await taught(1);
    const score = attempts.score(sampleOf("late"), { lane: "training" });
    await turn();
    const first = sent.at(-1) as Sent;
    first.ageMs = 1000;
    await expect.poll(() => sent).toHaveLength(2);
    sent[1]?.settle(failed);
    first.settle(late);
    expect(await score).toMatchObject({ error: named });
  });
});

test("a slot is given back where its work throws at once", async () => {
  const slots = new Slots(1);
  const throwing = (): never => {
    throw new Error("at once");
  };
  await expect(slots.run(throwing)).rejects.toThrow("at once");
  expect(await slots.run(async () => "next")).toBe("next");
});
