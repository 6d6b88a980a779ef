/**
 * Samples without a score in words, and advice on them by the cause: it names a flag if there is
 * one.
 */

import type { FailureClass, ScoreFailureCode } from "@rayling/reward-loop";
import { grouped } from "../output/numbers.ts";
import { plain } from "../output/output.ts";
import type { RunSummary } from "./run-summary.ts";
import type { ScoreOptions } from "./score-options.ts";

export interface FailureCount {
  readonly class: FailureClass;
  readonly code: string;
  readonly count: number;
}

/** Returns one line for each kind of failure: how many there are, what happened, an example. */
export function failureLines({ invalid, failures, done }: RunSummary): string[] {
  return [...invalid].map(([code, { count, example }]) => {
    const classes = failures.filter((one) => one.code === code).map((one) => one.class);
    const kinds = [code, ...new Set(classes)].map((kind) => plain(kind)).join(", ");
    const [firstLine = ""] = example.split("\n", 1);
    const what = failureWords[code] ?? "they have no score";
    return `${grouped(count)} of ${grouped(done)} could not be scored (${((100 * count) / done).toFixed(1)} %): ${what} (${kinds}), for example: ${plain(firstLine)}`;
  });
}

/** A log that another version wrote may have other codes. */
const failureWords: Readonly<Record<string, string>> = {
  SCORE_THREW: "the reward function threw",
  INVALID_SCORE: "the reward function returned no score",
  CANNOT_TELL: "the reward function cannot tell",
  REFUSED: "the judge's model refused to answer",
  TRUNCATED: "the judge's model used up its tokens before an answer",
  NOT_ENCODABLE: "the extra info cannot travel between threads",
  SCORE_TIMEOUT: "the reward function was not done in time",
  RETRY_BUDGET: "the time was over before the next attempt",
  EXECUTOR_DIED: "the reward function ended its thread or process",
  SPEND_CAP: "all that may be spent was spent",
  GIVEN_UP: "nobody needed the scores any more",
  NOT_IN_LOG: "the replayed log does not have them",
  INVALID_SAMPLE: "the samples lack what the reward function needs",
  MISSING_TOKENIZER: "a tokenizer is missing",
  UNKNOWN_DATA_SOURCE: "no reward function is known for the data source",
  SANDBOX_UNAVAILABLE: "programs cannot be run here",
} satisfies Readonly<Record<ScoreFailureCode, string>>;

type Asked = Pick<ScoreOptions, "policy" | "timeoutMs">;

/**
 * Returns one line for each class (for "data": for each code), the most frequent first: "3 x
 * rate-limit: --retries 5 asks again".
 */
export function adviceOn(failures: readonly FailureCount[], asked: Asked): string[] {
  // The class determines the advice; only for data the code does.
  const kinds = Map.groupBy(failures, (one) => (one.class === "data" ? one.code : one.class));
  return [...kinds]
    .map(([kind, own]) => ({ kind, own, count: own.reduce((sum, { count }) => sum + count, 0) }))
    .toSorted((a, b) => b.count - a.count)
    .flatMap(({ kind, own, count }) => {
      const [first] = own;
      const text = first === undefined ? undefined : adviceFor(first, asked);
      return text === undefined ? [] : [`${grouped(count)} x ${kind}: ${text}`];
    });
}

function adviceFor(failure: FailureCount, asked: Asked): string | undefined {
  switch (failure.class) {
    case "rate-limit":
      return hasRetries(asked)
        ? "--rpm or --max-in-flight auto keep to what the endpoint allows; --resume asks again"
        : "--retries 5 asks again";
    case "infrastructure":
      return hasRetries(asked)
        ? "no attempt was answered: --resume asks again when the endpoint is up"
        : "--retries 5 asks again";
    case "timeout":
      return timeoutAdvice(asked);
    case "user-code":
      return "when the reward function is fixed, --resume --keep-stale scores these again";
    default:
      return dataAdvice[failure.code];
  }
}

/**
 * Returns the arguments of a run with the flags that score its failed samples again; undefined
 * where no further call helps, or its input cannot be read again.
 *
 * @param args arguments of that run
 */
export function argsAgain(
  args: readonly string[],
  failures: readonly FailureCount[],
  { solutions, ...asked }: Asked & Pick<ScoreOptions, "solutions">,
): string[] | undefined {
  const classes = new Set(failures.map((one) => one.class));
  classes.delete("data");
  if (args.length === 0 || classes.size === 0 || solutions === "/dev/stdin") return undefined;
  const own = args.filter((arg) => !ofResumed.has(arg));
  // A function that threw is changed first, and is then another version.
  if (classes.has("user-code")) return [...own, "--resume", "--keep-stale"];
  return [...own, "--resume", ...(hasRetries(asked) ? [] : ["--retries", "5"])];
}

const ofResumed: ReadonlySet<string> = new Set(["--resume", "--keep-stale", "--rescore-stale"]);

function hasRetries({ policy }: Asked): boolean {
  return policy.retry !== undefined;
}

function timeoutAdvice(asked: Asked): string {
  const { timeoutMs } = asked;
  const longer = timeoutMs === undefined ? undefined : `--timeout ${2 * timeoutMs} waits longer`;
  const again = hasRetries(asked) ? "--resume asks again" : "--retries 5 asks again";
  return [longer, again].filter((one) => one !== undefined).join(", ");
}

/** Advice for samples that no further call helps. */
const dataAdvice: Readonly<Record<string, string>> = {
  CANNOT_TELL: "--judge asks a judge what the function cannot tell",
  SPEND_CAP: "--resume with a larger --budget scores these",
  NOT_IN_LOG: "without --replay, --resume scores these",
  SANDBOX_UNAVAILABLE: "--resume scores these where programs can be run",
};
