/**
 * verl's default_compute_score: the score function of a user who gave none, chosen by data source.
 */

import { InvalidSampleError, InvalidScorerOptionError } from "../errors.ts";
import type { SandboxIsolation } from "../sandbox/isolation/isolation.ts";
import { LocalSandbox } from "../sandbox/local-sandbox.ts";
import type { ComputeScore, ScoreInput, ScoreOutput } from "../scoring/compute-score.ts";
import { describeValue } from "../value-description.ts";
import { scorePrimeCode } from "./code/prime-code.ts";
import { scoreSandboxFusion } from "./code/sandbox-fusion.ts";
import { scoreGeo3k } from "./geo3k.ts";
import { scoreGsm8k } from "./gsm8k.ts";
import { scoreMathDapo } from "./math-dapo.ts";
import { scoreMathReward } from "./math-reward.ts";
import { scorePrimeMath } from "./prime-math.ts";
import { routeDataSource } from "./routes.ts";
import type { ScorerName } from "./routes.ts";
import { scoreSearchR1 } from "./search-r1.ts";

/** How programs are tested (verl's data sources codecontests, apps, codeforces and taco), and answers of mathematics. */
export interface DefaultScoreOptions {
  /** Of prime_math and geo3k: more ways of writing the right answer than verl takes for it (PrimeMathOptions). Default false. */
  readonly lenient?: boolean | undefined;
  /** verl `sandbox_fusion.url`: programs are run by this service. Default: on this machine. */
  readonly sandboxFusionUrl?: string | undefined;
  /** verl `sandbox_fusion.memory_limit_mb`. Default 1,024. */
  readonly memoryLimitMb?: number | undefined;
  /** Programs at once on this machine. Default: one per CPU. */
  readonly maxConcurrent?: number | undefined;
  /** What may keep programs apart on this machine (LocalSandbox): without any of them nothing is run. Default: whatever there is. */
  readonly isolation?: readonly SandboxIsolation[] | undefined;
}

/** The same function with settings of its own. Throws InvalidScorerOptionError. */
export function createDefaultComputeScore(options: DefaultScoreOptions = {}): ComputeScore {
  const { sandboxFusionUrl, memoryLimitMb, maxConcurrent, isolation, lenient = false } = options;
  if (typeof lenient !== "boolean") {
    throw new InvalidScorerOptionError("lenient", "true or false", describeValue(lenient));
  }
  const memory = memoryLimitMb === undefined ? {} : { memoryLimitMb };
  const sandbox = new LocalSandbox({
    ...memory,
    ...(maxConcurrent === undefined ? {} : { maxConcurrent }),
    ...(isolation === undefined ? {} : { isolation }),
  });
  return (input) => {
    const { scorer } = routeDataSource(input.dataSource, { sandboxFusionUrl });
    const { solutionStr, groundTruth, signal } = input;
    switch (scorer) {
      case "prime_code":
        return scoreOf(scorePrimeCode(solutionStr, groundTruth, { sandbox, signal }));
      case "sandbox_fusion": {
        const url = sandboxFusionUrl ?? "";
        return scoreOf(scoreSandboxFusion(solutionStr, groundTruth, { url, ...memory, signal }));
      }
      default:
        return scoreByRule(scorer, input, lenient);
    }
  };
}

/**
 * A number, or a promise of one where programs are tested. Throws UnknownDataSourceError, InvalidSampleError for a ground truth that is not what the scorer compares with, and what
 * scorePrimeCode does.
 */
export const defaultComputeScore: ComputeScore = createDefaultComputeScore();

/** verl keeps the score alone, too. */
async function scoreOf(tested: ReturnType<typeof scorePrimeCode>): Promise<number> {
  const { score } = await tested;
  return score;
}

function scoreByRule(
  scorer: Exclude<ScorerName, "prime_code" | "sandbox_fusion">,
  input: ScoreInput,
  lenient: boolean,
): ScoreOutput {
  const { solutionStr } = input;
  switch (scorer) {
    case "gsm8k":
      return scoreGsm8k(solutionStr, textOf(input));
    case "math_reward":
      return scoreMathReward(solutionStr, textOf(input));
    case "math_dapo":
      return scoreMathDapo(solutionStr, textOf(input));
    case "prime_math":
      return scorePrimeMath(solutionStr, textOf(input), { lenient }).correct ? 1 : 0;
    case "geo3k":
      return scoreGeo3k(solutionStr, textOf(input), { lenient });
    default:
      return scoreSearchR1(solutionStr, targetOf(input));
  }
}

/** verl compares text with whatever this is, so a number as ground truth would score 0 for ever. */
function textOf({ dataSource, groundTruth }: ScoreInput): string {
  if (typeof groundTruth === "string") return groundTruth;
  throw new InvalidSampleError(
    "groundTruth",
    `a string for "${dataSource}"`,
    describeValue(groundTruth),
  );
}

function targetOf({ dataSource, groundTruth }: ScoreInput): string | readonly string[] {
  const target = (groundTruth as { readonly target?: unknown } | null)?.target;
  if (typeof target === "string") return target;
  if (Array.isArray(target) && target.every((one) => typeof one === "string")) return target;
  throw new InvalidSampleError(
    "groundTruth",
    `an object with a target, a string or several, for "${dataSource}"`,
    describeValue(groundTruth),
  );
}
