/** A call that hears of its end hears what `runSingle` resolves to, or rejects with, once. */

import { expect, test, vi } from "vitest";
import { GdpoRewardManager, NaiveRewardManager } from "../src/index.ts";
import type { ComputeScore, RewardSample, ScoreCall } from "../src/index.ts";
import { calledFunction } from "../src/calling/callable.ts";

const sample: RewardSample = { dataSource: "here", response: "4", groundTruth: "4" };

type Input = { readonly [name: string]: unknown };

const functions: readonly (readonly [string, (input: Input) => unknown])[] = [
  ["returns a number", ({ solutionStr }) => Number(solutionStr)],
  ["returns a record", ({ groundTruth }) => ({ score: 1, groundTruth })],
  ["resolves to a number", async ({ solutionStr }) => Number(solutionStr)],
  ["resolves late", async () => await new Promise((resolve) => void setImmediate(resolve, 2))],
  // oxlint-disable-next-line unicorn/no-thenable -- as other libraries make them
  ["returns a thenable", () => ({ then: (resolve: (score: number) => void) => resolve(3) })],
  ["cannot tell", () => null],
  ["resolves to no score", async () => "much"],
  ["returns no score", () => undefined],
  ["throws", () => fail("at once")],
  ["rejects", async () => fail("later")],
  ["reads a missing argument", (input) => Number(input["answer"])],
  ["hides that it read one", (input) => hidden(input)],
  ["resolves, and hides that it read one", async (input) => hidden(input)],
];

function fail(message: string): never {
  throw new Error(message);
}

function hidden(input: Input): number {
  try {
    return Number(input["answer"]);
  } catch {
    return 0;
  }
}

const samples: readonly (readonly [string, RewardSample])[] = [
  ["a text", sample],
  ["token ids", { ...sample, response: [4] }],
  // A caller of JavaScript may send it.
  ["no ground truth", { ...sample, groundTruth: undefined }],
];

const managers = [NaiveRewardManager, GdpoRewardManager] as const;
const tokenizer = { decode: (ids: ArrayLike<number>) => Array.from(ids).join("") };

const cases = managers.flatMap((Manager) =>
  samples.flatMap(([kind, given]) =>
    functions.flatMap(([does, work]) =>
      [true, false].map((isWrapped) => ({ Manager, kind, given, does, work, isWrapped })),
    ),
  ),
);

test.each(cases)(
  "$Manager.name, $kind, a function that $does, wrapped: $isWrapped",
  async ({ Manager, given, work, isWrapped }) => {
    const clock = { enter: vi.fn<() => void>(), leave: vi.fn<() => void>() };
    const computeScore = isWrapped ? await wrapped(work, clock) : (work as ComputeScore);
    const manager = new Manager({ computeScore, tokenizer });
    const [expected] = await Promise.allSettled([manager.runSingle(given)]);
    clock.enter.mockClear();
    clock.leave.mockClear();
    expect(await begun(manager, given)).toEqual(expected);
    expect(clock.leave).toHaveBeenCalledTimes(clock.enter.mock.calls.length);
  },
);

async function wrapped(
  work: (input: Input) => unknown,
  clock: { enter: () => void; leave: () => void },
): Promise<ComputeScore> {
  const called = await calledFunction(work, { name: "score", clock });
  if (called.takesLists) throw new TypeError("it takes one sample");
  return called.call;
}

/** Resolves to the end of a call, after a turn in which it might hear of another one. */
async function begun(
  manager: InstanceType<(typeof managers)[number]>,
  given: RewardSample,
): Promise<unknown> {
  const ends: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const ended = (end: unknown): void => {
    ends.push(end);
    resolve();
  };
  const call: ScoreCall = {
    sample: given,
    given: undefined,
    settled: (value) => ended({ status: "fulfilled", value }),
    failed: (reason) => ended({ status: "rejected", reason }),
  };
  manager.begin(call);
  expect(ends, "it never hears at once").toEqual([]);
  await promise;
  await new Promise((next) => void setImmediate(next));
  expect(ends).toHaveLength(1);
  return ends[0];
}
