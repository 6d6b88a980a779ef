/**
 * verl's default_compute_score: the score function of users without their own, chosen by data
 * source.
 */

import { InvalidSampleError, InvalidScorerOptionError } from "../errors.ts";
import type { SandboxIsolation } from "../sandbox/isolation/isolation.ts";
import { LocalSandbox } from "../sandbox/local-sandbox.ts";
import type { ComputeScore, ScoreInput, ScoreOutput } from "../scoring/compute-score.ts";
import { checkOptionNames } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import { describeValue } from "../value-description.ts";
import { scorePrimeCode } from "./code/prime-code.ts";
import { KeptTests } from "./code/kept-tests.ts";
import { scoreByService } from "./code/sandbox-fusion.ts";
import { scoreGeo3k } from "./geo3k.ts";
import { scoreGsm8k } from "./gsm8k.ts";
import { scoreMathDapo } from "./math-dapo.ts";
import { scoreMathReward } from "./math-reward.ts";
import { scorePrimeMath } from "./prime-math.ts";
import { routeDataSource } from "./routes.ts";
import type { ScorerName } from "./routes.ts";
import { scoreSearchR1 } from "./search-r1.ts";
import { fieldOf } from "../values/records.ts";

/**
 * Options for tests of programs (verl's data sources codecontests, apps, codeforces and taco), and
 * for answers of mathematics.
 */
export interface DefaultScoreOptions {
  /**
   * Whether prime_math and geo3k accept more spellings of the right answer than verl does
   * (PrimeMathOptions). Default false.
   */
  readonly lenient?: boolean | undefined;
  /** verl `sandbox_fusion.url`: this service runs programs. Default: this machine does. */
  readonly sandboxFusionUrl?: string | undefined;
  /** verl `sandbox_fusion.memory_limit_mb`. Default 1,024. */
  readonly memoryLimitMb?: number | undefined;
  /** The pause before the service is asked again (SandboxFusionOptions). Default 1,000. */
  readonly retryDelayMs?: number | undefined;
  /** The most programs at once on this machine. Default: one per CPU. */
  readonly maxConcurrent?: number | undefined;
  /**
   * Permitted isolations on this machine (LocalSandbox): without one no program runs. Default: all.
   */
  readonly isolation?: readonly SandboxIsolation[] | undefined;
}

const optionNames: OptionNames<DefaultScoreOptions> = {
  lenient: true,
  sandboxFusionUrl: true,
  memoryLimitMb: true,
  retryDelayMs: true,
  maxConcurrent: true,
  isolation: true,
};

/** Makes a default score function with other settings. Throws InvalidScorerOptionError. */
export function createDefaultComputeScore(options: DefaultScoreOptions = {}): ComputeScore {
  checkOptionNames(options, optionNames);
  const { sandboxFusionUrl, memoryLimitMb, maxConcurrent, isolation, lenient = false } = options;
  const { retryDelayMs } = options;
  if (typeof lenient !== "boolean") {
    throw new InvalidScorerOptionError("lenient", "true or false", describeValue(lenient));
  }
  const memory = memoryLimitMb === undefined ? {} : { memoryLimitMb };
  const delay = retryDelayMs === undefined ? {} : { retryDelayMs };
  const sandbox = new LocalSandbox({
    ...memory,
    ...(maxConcurrent === undefined ? {} : { maxConcurrent }),
    ...(isolation === undefined ? {} : { isolation }),
  });
  const kept = new KeptTests();
  return (input) => {
    const { scorer } = routeDataSource(input.dataSource, { sandboxFusionUrl });
    const { solutionStr, groundTruth, signal } = input;
    switch (scorer) {
      case "prime_code":
        return scoreOf(scorePrimeCode(solutionStr, groundTruth, { sandbox, signal }));
      case "sandbox_fusion": {
        const service = { url: sandboxFusionUrl ?? "", ...memory, ...delay, signal };
        return scoreOf(scoreByService(solutionStr, groundTruth, service, kept));
      }
      default:
        return rules[scorer](input, lenient);
    }
  };
}

/**
 * Returns a number, or a promise of one for tested programs. Throws UnknownDataSourceError,
 * InvalidSampleError for a ground truth of the wrong kind, and the errors of scorePrimeCode.
 */
export const defaultComputeScore: ComputeScore = createDefaultComputeScore();

/** verl also keeps only the score. */
async function scoreOf(tested: ReturnType<typeof scorePrimeCode>): Promise<number> {
  const { score } = await tested;
  return score;
}

type Rule = (input: ScoreInput, lenient: boolean) => ScoreOutput;

const rules: Readonly<Record<Exclude<ScorerName, "prime_code" | "sandbox_fusion">, Rule>> = {
  gsm8k: (input) => scoreGsm8k(input.solutionStr, textOf(input)),
  math_reward: (input) => scoreMathReward(input.solutionStr, textOf(input)),
  math_dapo: (input) => scoreMathDapo(input.solutionStr, textOf(input)),
  prime_math: (input, lenient) =>
    scorePrimeMath(input.solutionStr, writtenOf(input), { lenient }).correct ? 1 : 0,
  geo3k: (input, lenient) => scoreGeo3k(input.solutionStr, textOf(input), { lenient }),
  search_r1_like_qa_em: (input) => scoreSearchR1(input.solutionStr, targetOf(input)),
};

/** verl compares text with any ground truth, so a number would score 0 for ever. */
function textOf({ dataSource, groundTruth }: ScoreInput): string {
  if (typeof groundTruth === "string") return groundTruth;
  throw new InvalidSampleError(
    "groundTruth",
    `a string for "${dataSource}"`,
    describeValue(groundTruth),
  );
}

/** verl's prime_math, and no other of its scorers, compares with what a number is written as. */
function writtenOf(input: ScoreInput): string {
  const { groundTruth } = input;
  const isNumber = typeof groundTruth === "bigint" || Number.isFinite(groundTruth);
  return isNumber ? String(groundTruth) : textOf(input);
}

function targetOf({ dataSource, groundTruth }: ScoreInput): string | readonly string[] {
  const target = fieldOf(groundTruth, "target");
  if (typeof target === "string") return target;
  if (Array.isArray(target) && target.every((one) => typeof one === "string")) return target;
  throw new InvalidSampleError(
    "groundTruth",
    `an object with a target, a string or several, for "${dataSource}"`,
    describeValue(groundTruth),
  );
}
