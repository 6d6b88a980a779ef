/** verl's own results (test/golden/reward-scores.json), case by case. Every fn of the file is either checked here or listed as later. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  defaultComputeScore,
  extractGsm8kSolution,
  RewardNotSupportedError,
  routeDataSource,
  scoreGsm8k,
  UnknownDataSourceError,
} from "@rayling/reward-manager-registry";
import type { Gsm8kMethod, Gsm8kOptions } from "@rayling/reward-manager-registry";

interface GoldenCase {
  readonly name: string;
  readonly fn: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly params: Readonly<Record<string, unknown>>;
  readonly expected: {
    readonly error?: { readonly type: string; readonly message: string };
  } & Readonly<Record<string, unknown>>;
}

const folder =
  process.env["RAYLING_GOLDEN_DIR"] ??
  fileURLToPath(new URL("../../../test/golden", import.meta.url));
const { cases } = JSON.parse(readFileSync(join(folder, "reward-scores.json"), "utf8")) as {
  cases: readonly GoldenCase[];
};

/** Comes with a later issue: the scorer (or router) does not exist yet. */
const LATER: Readonly<Record<string, string>> = {
  "math_dapo.compute_score": "math_dapo",
  "math_dapo.normalize_final_answer": "math_dapo",
  "math_dapo.is_correct_minerva": "math_dapo",
  "math_reward.compute_score": "math_reward",
  "math_reward.strip_string": "math_reward",
  "math_reward.is_equiv": "math_reward",
  "math_batch.compute_score_batched": "math_reward",
  "prime_math.compute_score": "prime_math",
  "search_r1_like_qa_em.compute_score": "search_r1_like_qa_em",
  "search_r1_like_qa_em.compute_score_subem": "search_r1_like_qa_em",
  "NaiveRouter.pick_order": "the router of reward-loop",
  GlobalRequestLoadBalancer: "the router of reward-loop",
};

const SCORERS_THERE: readonly string[] = ["gsm8k"];

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
    const { scorer } = routeDataSource(dataSource);
    if (SCORERS_THERE.includes(scorer)) expect(score()).toEqual(expected["result"]);
    else expect(score).toThrow(new RewardNotSupportedError(dataSource, scorer));
  },
};

test("every fn of the file is checked or listed as later, never both", () => {
  const there = [...new Set(cases.map((golden) => golden.fn))].toSorted();
  expect([...Object.keys(CHECKS), ...Object.keys(LATER)].toSorted()).toEqual(there);
});

describe.each(Object.entries(CHECKS))("%s", (fn, check) => {
  const own = cases.filter((golden) => golden.fn === fn);
  test.each(own)("$name", (golden) => {
    check(golden);
  });
});
