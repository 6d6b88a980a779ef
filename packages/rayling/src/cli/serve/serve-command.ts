/**
 * `rayling serve`: opens the reward loop, serves it until a signal comes, and ends in order:
 * pending requests are answered, and records stay.
 */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import * as ray from "@rayling/core";
import { isLoopback } from "@rayling/core/http";
import { JsonlError } from "@rayling/data-proto";
import {
  RewardLogBusyError,
  RewardLogError,
  rewardVersionsOf,
  WriterMark,
} from "@rayling/reward-loop";
import type { RewardLoopManager } from "@rayling/reward-loop";
import { looksAtGroups } from "../../looks-at-groups.ts";
import { RequestNotes } from "../../serve/request-notes.ts";
import { RewardServer } from "../../serve/reward-server.ts";
import { ServedScores, StaleKeysError } from "../../serve/served-scores.ts";
import { askedFunctions } from "../functions/asked-functions.ts";
import type { AskedFunctions } from "../functions/asked-functions.ts";
import { CliError, refusalOf } from "../cli-error.ts";
import { grouped } from "../output/numbers.ts";
import { openAnswer } from "../output/formats.ts";
import { plain, tell } from "../output/output.ts";
import { createLoop, isOfFile, meantBy, refusedLoop } from "../score/score-loop.ts";
import { capText } from "../score/score-report.ts";
import type { ServeOptions } from "./serve-options.ts";
import { stopSignal } from "../stop-signal.ts";

/** @param version the version of the package */
export async function runServe(options: ServeOptions, version: string): Promise<void> {
  const token = await tokenOf(options);
  const stop = stopSignal();
  const answer = openAnswer(options.format);
  let mark: WriterMark | undefined;
  let scores: ServedScores | undefined;
  try {
    // Before what was spent is read: a server that still writes the log may spend more.
    mark = await markOf(options);
    await ray.init();
    const asked = await askedBy(options);
    const loop = await stop.race(openLoop(options, asked));
    if (!options.oneByOne && looksAtGroups(loop)) throw new CliError(2, ofGroups);
    const opened = await openScores(loop, options, asked, mark);
    scores = opened;
    const server = await listen(options, version, token, opened);
    const { record = null } = options;
    const { keys, staleKeys } = opened;
    const known = record === null ? { keys: null } : { keys, staleKeys };
    const about = { url: server.url, record, ...known };
    const spending = loop.spent > 0 ? loop.spending : [];
    await answer.printPart(about, () =>
      greeting({ server, scores: opened, spending }, options, token),
    );
    await stop.whenStopped();
    tell("ending: requests under way are answered; a second signal stops at once\n");
    const left = await server.drain(options.drainTimeoutMs);
    await loop.close();
    if (left === 0) return;
    throw new CliError(
      1,
      `${grouped(left)} were still under way ${options.drainTimeoutMs / 1000} s after the signal, and were given up`,
    );
  } finally {
    await ray.shutdown();
    await scores?.close();
    await mark?.remove();
    answer.close();
    stop.close();
  }
}

const ofGroups =
  "the reward function looks at all answers to a prompt (computeScores, postProcessScores), and a server answers each sample by itself: use rayling score, or --one-by-one if each sample's score is its own.";

/** Rejects with CliError 2 while another process writes the log. */
async function markOf({ record }: ServeOptions): Promise<WriterMark | undefined> {
  if (record === undefined) return undefined;
  try {
    return await WriterMark.put(record);
  } catch (error) {
    throw refusalOf(error, [RewardLogBusyError], "--record");
  }
}

/** Rejects with CliError 2. */
function askedBy(options: ServeOptions): Promise<AskedFunctions> {
  return askedFunctions({ ...options, replay: undefined, latencyMs: undefined, seed: 0 });
}

/** Rejects with CliError 2. */
async function openLoop(options: ServeOptions, asked: AskedFunctions): Promise<RewardLoopManager> {
  try {
    const { record } = options;
    return await createLoop(options, {
      ...asked.options,
      // The budget is that of all servers that went on with the log.
      ...(record === undefined ? {} : { spentBefore: resolve(record) }),
    });
  } catch (error) {
    if (options.record !== undefined && isOfFile(error, options.record)) {
      throw refusalOf(error, [Error], "--record");
    }
    throw refusedLoop(error, options, asked.flag);
  }
}

/** Rejects with CliError 2. */
async function openScores(
  loop: RewardLoopManager,
  options: ServeOptions,
  asked: AskedFunctions,
  mark: WriterMark | undefined,
): Promise<ServedScores> {
  const { record, keepStale: keepsStale } = options;
  if (record === undefined) return ServedScores.open(loop);
  // Beside the loop's present version: that of a cheaper judge at the cap, too.
  const { versions } = await rewardVersionsOf(meantBy(options, asked));
  try {
    return await ServedScores.open(loop, record, { mark, versions, keepsStale });
  } catch (error) {
    throw refusalOf(error, [JsonlError, RewardLogError, StaleKeysError], "--record");
  }
}

async function listen(
  options: ServeOptions,
  version: string,
  token: string | undefined,
  scores: ServedScores,
): Promise<RewardServer> {
  const { host, port, logsRequests } = options;
  const notes = new RequestNotes((line) => {
    if (logsRequests) tell(`${new Date().toISOString()} ${plain(line)}\n`);
  });
  try {
    return await RewardServer.start({
      ...options,
      version,
      token,
      scores,
      limits: options,
      metrics: () => ray.metrics.text(),
      notes,
    });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && addressCodes.has(error.code))) throw error;
    const at = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    throw new CliError(2, `--listen ${at}: ${error.message}`, { cause: error });
  }
}

const addressCodes: ReadonlySet<unknown> = new Set([
  "EADDRINUSE",
  "EADDRNOTAVAIL",
  "EACCES",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** The least length of a token, so that nobody can guess it. */
const leastToken = 16;

/** Rejects with CliError 2 when a required token is missing or malformed. */
async function tokenOf({ host, tokenFile }: ServeOptions): Promise<string | undefined> {
  const [where, token] =
    tokenFile === undefined
      ? ["RAYLING_SERVE_TOKEN", process.env["RAYLING_SERVE_TOKEN"]]
      : [`--token-file ${tokenFile}`, await readToken(tokenFile)];
  if (token === undefined || token === "") {
    if (tokenFile !== undefined) throw new CliError(2, `${where} is empty`);
    if (isLoopback(host)) return undefined;
    throw new CliError(
      2,
      `--listen ${host}: others can reach this address, so a token is needed: put it into RAYLING_SERVE_TOKEN or --token-file (openssl rand -hex 32 makes one)`,
    );
  }
  if (token.length >= leastToken && /^[\x21-\x7e]+$/.test(token)) return token;
  throw new CliError(
    2,
    `${where}: a token has at least ${leastToken} characters of ASCII, and no spaces`,
  );
}

async function readToken(path: string): Promise<string> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    throw new CliError(2, `--token-file: ${String(error)}`, { cause: error });
  }
}

function greeting(
  {
    server: { url },
    scores,
    spending,
  }: {
    readonly server: RewardServer;
    readonly scores: ServedScores;
    /** How far each cap is by what was spent before. */
    readonly spending: RewardLoopManager["spending"];
  },
  { record }: ServeOptions,
  token: string | undefined,
): string[] {
  const header = token === undefined ? "" : ' -H "Authorization: Bearer $RAYLING_SERVE_TOKEN"';
  const known =
    record === undefined
      ? []
      : [
          `Recording to ${plain(record)}: ${grouped(scores.keys)} keys are known${staleText(scores)}.`,
          ...spending.map(capText),
        ];
  const example = `  curl ${url}/score${header} -d '{"response": "4", "ground_truth": "4"}'`;
  return [`Serving rewards on ${url}`, ...known, "", example];
}

function staleText({ staleKeys }: ServedScores): string {
  if (staleKeys === 0) return "";
  return `, ${grouped(staleKeys)} of them with answers of another version of the reward functions`;
}
