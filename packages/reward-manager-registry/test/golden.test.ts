/** verl's own results (test/golden/reward-scores.json), case by case. Every fn of the file is either checked here or listed as later. */

import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import {
  defaultComputeScore,
  extractGsm8kSolution,
  InvalidScorerOptionError,
  routeDataSource,
  scoreGsm8k,
  scoreMathDapo,
  scoreMathReward,
  scorePrimeMath,
  scoreSearchR1,
  UnknownDataSourceError,
} from "@rayling/reward-manager-registry";
import type { Gsm8kMethod, Gsm8kOptions } from "@rayling/reward-manager-registry";
import { normalizeFinalAnswer } from "../src/scorers/math-dapo.ts";
import { isEquivalentMath, lastBoxedOnlyString } from "../src/scorers/math-reward.ts";
import { stripMathString } from "../src/scorers/math/strip-math-string.ts";
import { extractAnswer } from "../src/scorers/search-r1.ts";

type Texts = {
  readonly solution_str: string;
  readonly ground_truth: string;
};

interface GoldenCase {
  readonly name: string;
  readonly fn: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly params: Readonly<Record<string, unknown>>;
  readonly expected: {
    readonly error?: { readonly type: string; readonly message: string };
  } & Readonly<Record<string, unknown>>;
}

const { cases } = goldenFile("reward-scores.json") as { cases: readonly GoldenCase[] };

/** Not of this package: where it is tested, or why there is nothing to test. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "NaiveRouter.pick_order": "packages/reward-loop/test/reward-model/router.test.ts",
  GlobalRequestLoadBalancer:
    "it keeps a conversation on one of verl's rollout servers, and there are none here",
};

function checkSearchR1({ inputs, params, expected }: GoldenCase, substring: boolean): void {
  const { solution_str: solution, golden_answers: golden } = inputs as {
    solution_str: string;
    golden_answers: string | readonly string[];
  };
  const { score, format_score: formatScore } = params as { score?: number; format_score?: number };
  expect({
    extracted: extractAnswer(solution),
    score: scoreSearchR1(solution, golden, {
      substring,
      ...(score === undefined ? {} : { score }),
      ...(formatScore === undefined ? {} : { formatScore }),
    }),
  }).toEqual(expected);
}

const CHECKS: Readonly<Record<string, (golden: GoldenCase) => void>> = {
  "gsm8k.compute_score"({ inputs, params, expected }) {
    const { solution_str: solution, ground_truth: truth } = inputs as {
      solution_str: string;
      ground_truth: string;
    };
    const {
      method,
      score,
      format_score: formatScore,
    } = params as { method?: Gsm8kMethod; score?: number; format_score?: number };
    const options: Gsm8kOptions = {
      ...(method === undefined ? {} : { method }),
      ...(score === undefined ? {} : { score }),
      ...(formatScore === undefined ? {} : { formatScore }),
    };
    if (expected.error !== undefined) {
      expect(() => scoreGsm8k(solution, truth, options)).toThrow(
        expect.objectContaining({ code: "INVALID_SCORER_OPTION" }),
      );
      return;
    }
    expect({
      extracted: extractGsm8kSolution(solution, method),
      score: scoreGsm8k(solution, truth, options),
    }).toEqual(expected);
  },

  "math_reward.compute_score"({ inputs, expected }) {
    const { solution_str: solution, ground_truth: truth } = inputs as Texts;
    expect({
      last_boxed: lastBoxedOnlyString(solution),
      score: scoreMathReward(solution, truth),
    }).toEqual(expected);
  },

  "math_reward.strip_string"({ inputs, expected }) {
    const strip = (): string => stripMathString(inputs["string"] as string);
    if (expected.error === undefined) expect(strip()).toBe(expected["out"]);
    else expect(strip).toThrow(RangeError);
  },

  "math_reward.is_equiv"({ inputs, expected }) {
    const { str1, str2 } = inputs as { str1: string | null; str2: string | null };
    expect(isEquivalentMath(str1, str2)).toBe(expected["out"]);
  },

  "math_batch.compute_score_batched"({ inputs, expected }) {
    const { solution_strs: solutions, ground_truths: truths } = inputs as {
      solution_strs: readonly string[];
      ground_truths: readonly string[];
    };
    expect(solutions.map((one, index) => scoreMathReward(one, truths[index] as string))).toEqual(
      expected["scores"],
    );
  },

  "math_dapo.compute_score"({ inputs, params, expected }) {
    const { solution_str: solution, ground_truth: truth } = inputs as Texts;
    const { strict_box_verify: strictBoxVerify = false, pause_tokens_index: pauseTokensIndex } =
      params as { strict_box_verify?: boolean; pause_tokens_index?: readonly number[] };
    const score = (): object =>
      scoreMathDapo(solution, truth, {
        strictBoxVerify,
        ...(pauseTokensIndex === undefined ? {} : { pauseTokensIndex }),
      });
    if (expected.error === undefined) expect(score()).toEqual(expected);
    else expect(score).toThrow(InvalidScorerOptionError);
  },

  "math_dapo.normalize_final_answer"({ inputs, expected }) {
    expect(normalizeFinalAnswer(inputs["final_answer"] as string)).toBe(expected["out"]);
  },

  "prime_math.compute_score"({ inputs, expected }) {
    const { model_output: output, ground_truth: truth } = inputs as {
      model_output: string;
      ground_truth: string;
    };
    const { correct, formatCorrect, extracted } = scorePrimeMath(output, truth);
    expect({ correct, format_correct: formatCorrect, extracted }).toEqual(expected);
  },

  "search_r1_like_qa_em.compute_score": (golden) => checkSearchR1(golden, false),
  "search_r1_like_qa_em.compute_score_subem": (golden) => checkSearchR1(golden, true),

  "default_compute_score.route"({ inputs, expected }) {
    const dataSource = inputs["data_source"] as string;
    const sandboxFusionUrl = inputs["sandbox_fusion_url"] as string | undefined;
    if (expected.error !== undefined) {
      expect(() => routeDataSource(dataSource, { sandboxFusionUrl })).toThrow(
        expected.error.message,
      );
      return;
    }
    const { scorer, options } = routeDataSource(dataSource, { sandboxFusionUrl });
    expect({ scorer, keywords: Object.keys(options) }).toEqual(expected);
  },

  default_compute_score({ inputs, expected }) {
    const dataSource = inputs["data_source"] as string;
    const score = () =>
      defaultComputeScore({
        dataSource,
        solutionStr: inputs["solution_str"] as string,
        groundTruth: inputs["ground_truth"],
        extraInfo: {},
      });
    if (expected.error !== undefined) {
      expect(score).toThrow(UnknownDataSourceError);
      expect(score).toThrow(expected.error.message);
      return;
    }
    expect(score()).toEqual(expected["result"]);
  },
};

test("every fn of the file is checked, or says where it is, or why it is not", () => {
  const fns = [...new Set(cases.map((golden) => golden.fn))];
  const known = (fn: string): boolean => Object.hasOwn(CHECKS, fn) !== Object.hasOwn(ELSEWHERE, fn);
  expect(fns.filter((fn) => !known(fn))).toEqual([]);
  expect(fns).not.toEqual([]);
});

describe.each(Object.entries(CHECKS))("%s", (fn, check) => {
  const own = cases.filter((golden) => golden.fn === fn);
  test.each(own)("$name", (golden) => {
    check(golden);
  });
});
