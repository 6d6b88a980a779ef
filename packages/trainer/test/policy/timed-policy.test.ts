import { TimedPolicy } from "@rayling/trainer";
import type { Rollout } from "@rayling/trainer";
import { describe, expect, it } from "vitest";

const prompts = [[{ role: "user" as const, content: "one" }]];

/** Returns the rollouts of each moment in which the policy hands some over. */
async function momentsOf(policy: TimedPolicy, phase: string, n: number): Promise<number[]> {
  const moments: (readonly Rollout[])[] = [];
  const account = { phase, step: 1 };
  for await (const moment of policy.generate({ prompts, n, maxResponseLength: 1, account })) {
    moments.push(moment);
  }
  return moments.map((moment) => moment.length);
}

describe("TimedPolicy", () => {
  it("finishes rollouts all at the end unless told otherwise", async () => {
    const policy = new TimedPolicy({ seconds: { gen: 0.02, testing: 0.02 } });
    expect(await momentsOf(policy, "gen", 4)).toEqual([4]);
  });

  it("finishes them over the phase, in training and in validation each as it is told", async () => {
    const policy = new TimedPolicy({
      seconds: { gen: 1, testing: 0.02 },
      firstFinished: { gen: 0.1, testing: 1 },
    });
    expect((await momentsOf(policy, "gen", 4)).length).toBeGreaterThan(1);
    expect(await momentsOf(policy, "testing", 4)).toEqual([4]);
  });

  it("refuses a part that is none, and names the phase", () => {
    expect(() => new TimedPolicy({ seconds: {}, firstFinished: 0 })).toThrow(
      "firstFinished cannot be 0",
    );
    expect(() => new TimedPolicy({ seconds: {}, firstFinished: { testing: 2 } })).toThrow(
      "firstFinished.testing cannot be 2",
    );
    for (const given of [null, "half"] as unknown as number[]) {
      expect(() => new TimedPolicy({ seconds: {}, firstFinished: given })).toThrow(
        `firstFinished cannot be ${given}`,
      );
    }
    const unknown = { generate: 0.5 } as { gen?: number };
    expect(() => new TimedPolicy({ seconds: {}, firstFinished: unknown })).toThrow(
      "firstFinished.generate is neither gen nor testing",
    );
  });
});
