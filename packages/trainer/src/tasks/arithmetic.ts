/**
 * Additions to train on, made here: "37+85=" is to be answered with "221", the sum's digits from
 * the last to the first, as one adds by hand. A small model learns it in seconds. No problem of the
 * test set, nor the same one with its operands exchanged, is in the training set.
 */

import { TrainerInputError } from "../errors.ts";
import { seededOrder } from "../data/seeded-order.ts";
import type { ChatMessage } from "../policy/policy.ts";

/** Size and split of the arithmetic task. */
export interface ArithmeticOptions {
  /** Operands are from this one. Default 10. */
  readonly low?: number;
  /** The largest operand. Default 99. */
  readonly high?: number;
  /** Answers from the last digit to the first. Default true. */
  readonly reversed?: boolean;
  /** Share of all problems that are for tests. Default 0.1. */
  readonly testShare?: number;
  /** Seed of the split and of the order. Default 0. */
  readonly seed?: number;
}

/** verl's columns of a prompt. */
export interface ArithmeticRow {
  /** The data source, which chooses the scorer. */
  readonly data_source: "arithmetic";
  /** The problem, as a conversation. */
  readonly prompt: readonly [ChatMessage & { readonly content: string }];
  /** verl's name of the subject. */
  readonly ability: "math";
  /** The answer, which the scorer compares with the response. */
  readonly reward_model: {
    readonly style: "rule";
    /** The answer to the letter. */
    readonly ground_truth: string;
  };
  /** Split, and place in the split from 0. */
  readonly extra_info: { readonly split: "train" | "test"; readonly index: number };
}

/** Additions to train on, and others to test on. */
export interface ArithmeticTask {
  /** Rows for training. */
  readonly train: readonly ArithmeticRow[];
  /** Rows for validation; none is in `train`, not even with exchanged operands. */
  readonly test: readonly ArithmeticRow[];
}

/** Every character of prompts and answers. */
export const arithmeticAlphabet = "0123456789+=";

/** @throws TrainerInputError that names the option */
export function arithmeticTask(options: ArithmeticOptions = {}): ArithmeticTask {
  const { low = 10, high = 99, reversed = true, testShare = 0.1, seed = 0 } = options;
  if (!Number.isSafeInteger(low) || low < 0) {
    throw new TrainerInputError("low", `low must be a whole number of at least 0, is ${low}`);
  }
  if (!Number.isSafeInteger(high) || high < low) {
    throw new TrainerInputError(
      "high",
      `high must be a whole number of at least ${low}, is ${high}`,
    );
  }
  if (!(testShare >= 0 && testShare < 1)) {
    throw new TrainerInputError(
      "testShare",
      `testShare must be from 0 to below 1, is ${testShare}`,
    );
  }
  const operands = Array.from({ length: high - low + 1 }, (_, i) => low + i);
  const pairs = operands.flatMap((a) => operands.filter((b) => b >= a).map((b) => [a, b] as const));
  const shuffled = Array.from(seededOrder(pairs.length, seed, 0), (i) => pairs[i]!);
  const tested = Math.round(pairs.length * testShare);
  const rows = (split: "train" | "test", some: typeof pairs): ArithmeticRow[] => {
    const both = some.flatMap(([a, b]): typeof pairs => {
      const turned: typeof pairs = a === b ? [] : [[b, a]];
      return [[a, b], ...turned];
    });
    return Array.from(seededOrder(both.length, seed, 1), (i, index) => {
      const [a, b] = both[i]!;
      return rowOf(a, b, { reversed, split, index });
    });
  };
  return {
    train: rows("train", shuffled.slice(tested)),
    test: rows("test", shuffled.slice(0, tested)),
  };
}

function rowOf(
  a: number,
  b: number,
  { reversed, ...extra_info }: ArithmeticRow["extra_info"] & { readonly reversed: boolean },
): ArithmeticRow {
  const digits = Array.from(String(a + b));
  return {
    data_source: "arithmetic",
    prompt: [{ role: "user", content: `${a}+${b}=` }],
    ability: "math",
    reward_model: {
      style: "rule",
      ground_truth: (reversed ? digits.toReversed() : digits).join(""),
    },
    extra_info,
  };
}
