/**
 * The flags of `rayling serve`: their texts, defaults and checks. The command itself loads when it
 * runs.
 */

import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import type { OnInvalid } from "../../serve/forms/form.ts";
import { CliError } from "../cli-error.ts";
import { exitHelp } from "../exit-codes.ts";
import { byteCount, count, filePath, hostAndPort, hostName, secondCount } from "../flag-values.ts";
import { policyOf } from "../functions/policy-flags.ts";
import { addFormatFlag } from "../output/formats.ts";
import type { FormatFlag } from "../output/formats.ts";
import { functionsOf, threadsOf } from "../score/read-options.ts";
import { addRewardFlags } from "../score/score-options.ts";
import type { ScoreFlags, ScoreOptions, Threads } from "../score/score-options.ts";

export interface ServeOptions
  extends
    Threads,
    FormatFlag,
    Pick<
      ScoreOptions,
      "reward" | "judge" | "rewards" | "rewardKwargs" | "manager" | "managerOptions" | "policy"
    > {
  readonly host: string;
  readonly port: number;
  readonly tokenFile: string | undefined;
  readonly allowedHosts: readonly string[];
  /** The path of the reward log. */
  readonly record: string | undefined;
  /** Whether keys keep the answers that another version of the reward functions gave. */
  readonly keepStale: boolean;
  readonly onInvalid: OnInvalid;
  /** Whether a function that scores groups is to get each sample as a group of one. */
  readonly oneByOne: boolean;
  readonly maxBodyBytes: number;
  readonly maxSamples: number;
  readonly maxRequests: number;
  readonly maxConnections: number;
  readonly idleTimeoutMs: number;
  readonly drainTimeoutMs: number;
  /** Whether each request for scores logs a line on stderr. */
  readonly logsRequests: boolean;
}

type Flags = Omit<ScoreFlags, "demo" | "solutions" | "replay" | "latency" | "resume"> &
  Pick<ServeOptions, "onInvalid" | "maxSamples" | "maxRequests" | "maxConnections"> & {
    readonly listen: readonly [string, number];
    readonly tokenFile?: string;
    readonly allowedHost: readonly string[];
    readonly record?: string;
    readonly oneByOne?: true;
    readonly maxBody: number;
    readonly idleTimeout: number;
    readonly drainTimeout: number;
    readonly requestLog: boolean;
  };

/** @param run does the work; it loads when the command runs */
export function addServeCommand(
  program: Command,
  run: (options: ServeOptions) => Promise<void>,
): void {
  const command = program
    .command("serve")
    .summary("serve reward functions over HTTP")
    .description(
      "Scores responses for trainers in other languages: a reward loop of many workers behind HTTP, in the wire forms of OpenRLHF, slime and NeMo-Gym and in one of its own.",
    )
    .option(
      "--listen <host:port>",
      "anything but a loopback address needs a token; port 0: one that is free",
      hostAndPort,
      ["127.0.0.1", 8100] as const,
    )
    .option(
      "--token-file <path>",
      "file with the token that clients must have (default: RAYLING_SERVE_TOKEN; on the loopback none)",
    )
    .option(
      "--allowed-host <name>",
      "a name by which clients may call the server, beside addresses and localhost, without a port; may be repeated",
      (name: string, others: readonly string[]) => [...others, hostName(name)],
      [],
    )
    .option(
      "--on-invalid <fail|null|number>",
      "what OpenRLHF, slime and NeMo-Gym are sent for a sample that could not be scored: an HTTP error, no score, or that score",
      onInvalid,
      "fail",
    )
    .option(
      "--one-by-one",
      "a function that scores groups gets groups of one, and its postProcessScores none",
    )
    .option(
      "--drain-timeout <seconds>",
      "how long SIGTERM and Ctrl-C wait for what is under way",
      secondCount(0),
      300,
    )
    .option("--no-request-log", "write no line for each request");
  addRewardFlags(addFormatFlag(addLimitFlags(addRecordFlags(command))), "server")
    .allowExcessArguments(false)
    .addHelpText("after", help)
    .action(async (flags: Flags, self: Command) => {
      if (self.getOptionValueSource("failAbove") === "cli") throw new CliError(2, ofRuns);
      await run(readServeOptions(flags));
    });
}

function addRecordFlags(command: Command): Command {
  return command
    .option(
      "--record <path>",
      "reward log: every outcome is written there before it is answered, and after a restart keys are known again, and what was spent counts against --budget",
      filePath,
    )
    .option(
      "--keep-stale",
      "with --record: keys keep the answers that another version of the reward functions gave, beside the new ones",
      false,
    );
}

function addLimitFlags(command: Command): Command {
  return command
    .option("--max-body <size>", "of one request", byteCount, 64 * 2 ** 20)
    .option("--max-samples <count>", "of one request", count(1), 10_000)
    .option("--max-requests <count>", "under way at once; beyond it 503", count(1), 1024)
    .option("--max-connections <count>", "beyond it one that does nothing is cut", count(1), 4096)
    .option(
      "--idle-timeout <seconds>",
      "how long a connection may say nothing between requests: longer than clients keep one (aiohttp: 15)",
      secondCount(1),
      30,
    );
}

/** A server has no run that could fail, so the flag has no meaning there. */
const ofRuns =
  "--fail-above is for runs that end: a server answers each sample by itself, as --on-invalid says.";

const ofGroups =
  "--fallback groupMean is for rayling score: a server answers each sample by itself, and knows no group.";

/** Throws CliError 2. */
function readServeOptions(flags: Flags): ServeOptions {
  const { listen, judge, rewardKwarg } = flags;
  if (flags.reward === undefined && flags.rewards === undefined) {
    throw new CliError(
      2,
      "--reward is missing: give the module of a reward function, or --rewards.",
    );
  }
  if (flags.keepStale && flags.record === undefined) {
    throw new CliError(2, "--keep-stale needs --record: without it no answer is known.");
  }
  const { reward, rewards } = functionsOf({ ...flags, demo: false });
  const policy = policyOf(flags, rewardKwarg);
  if (policy.onFailure?.fallback === "groupMean") throw new CliError(2, ofGroups);
  const [host, port] = listen;
  return {
    ...flags,
    reward,
    judge,
    rewards,
    rewardKwargs: rewardKwarg,
    managerOptions: flags.managerOption,
    ...threadsOf(flags),
    policy,
    host,
    port,
    tokenFile: flags.tokenFile,
    allowedHosts: flags.allowedHost,
    record: flags.record,
    keepStale: flags.keepStale,
    oneByOne: flags.oneByOne ?? false,
    maxBodyBytes: flags.maxBody,
    idleTimeoutMs: 1000 * flags.idleTimeout,
    drainTimeoutMs: 1000 * flags.drainTimeout,
    logsRequests: flags.requestLog,
  };
}

function onInvalid(text: string): OnInvalid {
  if (text === "fail" || text === "null") return text;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value)) return value;
  throw new InvalidArgumentError("It must be fail, null or a number.");
}

const help = `
POST /score takes { response, ground_truth, data_source?, prompt?, extra_info?, id? } and answers { score, valid, error, extra };
POST /score/batch takes { samples: [...] }. /openapi.json describes all paths, and /docs shows them as a page.
A sample that cannot be scored has no score, never 0.

SIGTERM and Ctrl-C answer what is under way, and refuse the rest with 503; a second one stops at once.
${exitHelp} A server that has answered all ends with 0.

Examples:
  rayling serve --reward ./reward.ts
  rayling serve --reward ./judge.ts --max-in-flight auto --retries 5 --record rewards.jsonl
  RAYLING_SERVE_TOKEN=... rayling serve --rewards rewards.yaml --listen 0.0.0.0:8100`;
