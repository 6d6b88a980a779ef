/**
 * verl's routing table: the scorer of each data source (verl/utils/reward_score/__init__.py,
 * 0.10.0.dev).
 */

import { UnknownDataSourceError } from "../errors.ts";
import { checkOptionNames } from "../option-names.ts";

/** Names of verl's scorers. */
export type ScorerName =
  | "gsm8k"
  | "math_reward"
  | "math_dapo"
  | "prime_math"
  | "prime_code"
  | "sandbox_fusion"
  | "geo3k"
  | "search_r1_like_qa_em";

/** The scorer of a data source, with its arguments. */
export interface ScorerRoute {
  /** The name of the scorer. */
  readonly scorer: ScorerName;
  /** The arguments that verl passes to this scorer beside solution and ground truth. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Settings that change which scorer is used. */
export interface RouteSettings {
  /** A URL makes a sandbox service run programs, instead of this machine. */
  readonly sandboxFusionUrl?: string | undefined;
}

const ROUTES: Readonly<Record<string, ScorerName>> = {
  "openai/gsm8k": "gsm8k",
  "lighteval/MATH": "math_reward",
  "DigitalLearningGmbH/MATH-lighteval": "math_reward",
  "HuggingFaceH4/MATH-500": "math_reward",
  math_dapo: "math_dapo",
  math: "math_dapo",
  math_dapo_reasoning: "math_dapo",
  numina_aops_forum: "prime_math",
  numina_synthetic_math: "prime_math",
  numina_amc_aime: "prime_math",
  numina_synthetic_amc: "prime_math",
  numina_cn_k12: "prime_math",
  numina_olympiads: "prime_math",
  codecontests: "prime_code",
  apps: "prime_code",
  codeforces: "prime_code",
  taco: "prime_code",
  "hiyouga/geometry3k": "geo3k",
  searchR1_nq: "search_r1_like_qa_em",
  searchR1_triviaqa: "search_r1_like_qa_em",
  searchR1_popqa: "search_r1_like_qa_em",
  searchR1_hotpotqa: "search_r1_like_qa_em",
  searchR1_2wikimultihopqa: "search_r1_like_qa_em",
  searchR1_musique: "search_r1_like_qa_em",
  searchR1_bamboogle: "search_r1_like_qa_em",
};

/**
 * Throws UnknownDataSourceError, InvalidScorerOptionError. Names are case sensitive; the one prefix
 * is "aime".
 */
export function routeDataSource(dataSource: string, settings: RouteSettings = {}): ScorerRoute {
  checkOptionNames(settings, { sandboxFusionUrl: true });
  const scorer = findScorer(dataSource);
  if (scorer === undefined) throw new UnknownDataSourceError(dataSource);
  if (scorer !== "prime_code") return { scorer, options: {} };
  return {
    scorer: settings.sandboxFusionUrl ? "sandbox_fusion" : "prime_code",
    options: { continuous: true },
  };
}

function findScorer(dataSource: string): ScorerName | undefined {
  if (Object.hasOwn(ROUTES, dataSource)) return ROUTES[dataSource];
  return dataSource.startsWith("aime") ? "math_dapo" : undefined;
}
