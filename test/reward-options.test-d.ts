/** Types that are made of the tables of options: what users give, by its names. */

import type {
  OnFailure,
  RetrySettings,
  RewardComponent,
  RewardLimits,
  RewardLoopOptions,
  SandboxFusionUse,
} from "@rayling/reward-loop";
import { expectTypeOf, test } from "vitest";

test("options are what the tables say", () => {
  expectTypeOf<RetrySettings["attempts"]>().toEqualTypeOf<number | undefined>();
  expectTypeOf<RetrySettings["classes"]>().toEqualTypeOf<
    readonly ("infrastructure" | "rate-limit" | "timeout" | "data" | "user-code")[] | undefined
  >();
  expectTypeOf<OnFailure["again"]>().toEqualTypeOf<boolean | undefined>();
  expectTypeOf<RewardLoopOptions["combine"]>().toEqualTypeOf<"sum" | "mean" | undefined>();
  expectTypeOf<RewardComponent["onInvalid"]>().toEqualTypeOf<
    "mask" | "leaveOut" | { readonly score: number } | undefined
  >();
  expectTypeOf<SandboxFusionUse["url"]>().toEqualTypeOf<string>();
  expectTypeOf<"auto">().toExtend<RewardLimits["concurrency"]>();
  expectTypeOf<{ max: 5 }>().toExtend<RewardLimits["concurrency"]>();
  expectTypeOf<{ attempts: 5 }>().toExtend<RewardLoopOptions["retry"]>();
  expectTypeOf<{ whenReached: { reward: "./cheap.ts" } }>().toExtend<RewardLoopOptions["spend"]>();
});

test("what no table has is a mistake", () => {
  // @ts-expect-error: it is attempts
  const retry: RetrySettings = { tries: 3 };
  // @ts-expect-error: it is a number
  const limits: RewardLimits = { requestsPerMinute: "60" };
  // @ts-expect-error: of the loop, not of a part
  const part: RewardComponent = { onFailure: { again: true } };
  expectTypeOf({ retry, limits, part }).not.toBeNever();
});
