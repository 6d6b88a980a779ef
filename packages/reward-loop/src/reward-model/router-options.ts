/** Options of the router: what they are, what they are by default, and what they may be. */

import { between, checkKeys, notAnOption } from "../options/read.ts";
import type { Range } from "../options/table.ts";
import type { RouterStrategy } from "./upstreams.ts";

export interface RouterOptions {
  /** Default 127.0.0.1. Beyond the loopback the token is all that guards it, and what it sends can be read on the way. */
  readonly host?: string;
  /** Default: any that is free. */
  readonly port?: number;
  /** A request must have it as `Authorization: Bearer <token>`. 32 characters at least. Default: a new one. It is not passed on. */
  readonly token?: string;
  /** The servers demand it as `Authorization: Bearer <key>` (`--api-key` of vLLM and SGLang). Default: they demand nothing. */
  readonly apiKey?: string;
  /** Paths that are let through besides those of inference, as `/v1/audio/transcriptions`; one that ends in `/*` stands for all below it. Default: none. */
  readonly allowedPaths?: readonly string[];
  /** Names of this machine that a request may have in its Host header, besides localhost and the address that it came to. Default: none. */
  readonly allowedHosts?: readonly string[];
  readonly strategy?: RouterStrategy;
  /** Servers that a request is tried on. Default 3. */
  readonly attempts?: number;
  /** How long a server may take until its answer begins, and between two parts of it; a client that takes none of it for twice as long has gone. Default 300,000. */
  readonly timeoutMs?: number;
  /** Default 10,000. */
  readonly connectTimeoutMs?: number;
  /** To each server. Default 256. */
  readonly connections?: number;
  /** From clients. Beyond it one that does nothing is cut for the new one, or the new one is answered 503. Default 4,096. */
  readonly maxConnections?: number;
  /** Requests under way; beyond it 503. Default 4,096. */
  readonly maxRequests?: number;
  /** Largest body of a request: it is kept to be sent again. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** All bodies together of the requests under way; beyond it 503. Default 512 MiB, or `maxBodyBytes` if that is more. */
  readonly maxBufferedBytes?: number;
  /** How long the head of a request may take to arrive, and a connection may say nothing. Default 10,000. */
  readonly headersTimeoutMs?: number;
  /** How long a whole request may take to arrive. Default 60,000. */
  readonly requestTimeoutMs?: number;
  /** Default /health. */
  readonly healthPath?: string;
  /** How often servers are asked for it. Default 5,000. */
  readonly healthEveryMs?: number;
  /** Equal servers are told apart by the body, so that the same requests go to the same servers (verl `full_determinism`). */
  readonly deterministic?: boolean;
}

const mebibyte = 2 ** 20;

export type RouterDefaults = Readonly<
  Record<
    | "port"
    | "attempts"
    | "timeoutMs"
    | "connectTimeoutMs"
    | "connections"
    | "maxConnections"
    | "maxRequests"
    | "maxBodyBytes"
    | "maxBufferedBytes"
    | "headersTimeoutMs"
    | "requestTimeoutMs"
    | "healthEveryMs",
    number
  >
>;

export const routerDefaults: RouterDefaults = {
  port: 0,
  attempts: 3,
  timeoutMs: 300_000,
  connectTimeoutMs: 10_000,
  connections: 256,
  maxConnections: 4096,
  maxRequests: 4096,
  maxBodyBytes: 64 * mebibyte,
  maxBufferedBytes: 512 * mebibyte,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  healthEveryMs: 5000,
};

type NumberOption = keyof RouterDefaults;

const aTimer: Range = { least: 1, below: 2 ** 31 };
const aCount: Range = { least: 1, whole: true };

const ranges: Readonly<Record<NumberOption, Range>> = {
  port: { least: 0, below: 65_536, whole: true },
  attempts: aCount,
  // Half of what a timer can take: a client has twice as long.
  timeoutMs: { least: 1, below: 2 ** 30 },
  connectTimeoutMs: aTimer,
  connections: aCount,
  maxConnections: aCount,
  maxRequests: aCount,
  maxBodyBytes: aCount,
  maxBufferedBytes: aCount,
  headersTimeoutMs: aTimer,
  requestTimeoutMs: aTimer,
  healthEveryMs: aTimer,
};

const strategies: readonly RouterStrategy[] = ["least-in-flight", "round-robin"];

const others: readonly Exclude<keyof RouterOptions, NumberOption>[] = [
  "host",
  "token",
  "apiKey",
  "allowedPaths",
  "allowedHosts",
  "strategy",
  "healthPath",
  "deterministic",
];

/** @param at what they are options of. Throws RewardLoopOptionError, which shows no token and no key */
export function checkRouterOptions(at: string, options: RouterOptions): void {
  checkKeys(at, options, [...(Object.keys(ranges) as NumberOption[]), ...others]);
  for (const [name, range] of Object.entries(ranges) as [NumberOption, Range][]) {
    between(`${at}.${name}`, options[name], range);
  }
  const { maxBodyBytes = 0, maxBufferedBytes = Infinity } = options;
  if (maxBufferedBytes < maxBodyBytes) {
    notAnOption(
      `${at}.maxBufferedBytes`,
      `at least maxBodyBytes, ${maxBodyBytes}`,
      maxBufferedBytes,
    );
  }
  const {
    host,
    strategy,
    token,
    apiKey,
    allowedPaths = [],
    allowedHosts = [],
    healthPath,
  } = options;
  if (host !== undefined && (typeof host !== "string" || host === "")) {
    notAnOption(`${at}.host`, "an address of this machine", host);
  }
  if (strategy !== undefined && !strategies.includes(strategy)) {
    notAnOption(`${at}.strategy`, strategies.join(" or "), strategy);
  }
  checkToken(`${at}.token`, token);
  checkKey(`${at}.apiKey`, apiKey);
  checkList(
    `${at}.allowedPaths`,
    allowedPaths,
    /^(?!.*\/\.{1,2}(?:\/|$))\/(?:[\w.~:@-]+\/)*(?:[\w.~:@-]+|\*)?$/,
    ["paths like /v1/audio/transcriptions or /v1/audio/*"],
  );
  checkList(`${at}.allowedHosts`, allowedHosts, /^(?:\[[\da-f:]+\]|[\w-]+(?:\.[\w-]+)*)$/i, [
    "names or addresses without a port",
  ]);
  if (healthPath !== undefined) {
    checkList(`${at}.healthPath`, [healthPath], /^\/[\w.~:@/-]*$/, ["a path like /health"]);
  }
}

/** Throws RewardLoopOptionError, which does not show it. */
export function checkToken(option: string, token: unknown): void {
  if (token === undefined || (typeof token === "string" && /^[\x21-\x7e]{32,}$/.test(token)))
    return;
  notAnOption(option, "a token of 32 characters at least, without spaces", kindOf(token));
}

/** As `checkToken`; how long the servers' own is, is theirs to say. */
export function checkKey(option: string, key: unknown): void {
  if (key === undefined || (typeof key === "string" && /^[\x21-\x7e]+$/.test(key))) return;
  notAnOption(option, "the servers' key, without spaces", kindOf(key));
}

/** The token of a router that the user names by its address. Throws RewardLoopOptionError, which does not show it. */
export function routerTokenOf(options: {
  readonly rewardRouterAddress?: string | undefined;
  readonly rewardRouterToken?: string | undefined;
}): string | undefined {
  const { rewardRouterAddress: address, rewardRouterToken: token } = options;
  checkKey("rewardRouterToken", token);
  if (token === undefined || address !== undefined) return token;
  return notAnOption("rewardRouterAddress", "given with rewardRouterToken", address);
}

function kindOf(secret: unknown): string {
  return typeof secret === "string" ? `a text of ${secret.length} characters` : typeof secret;
}

function checkList(option: string, list: unknown, form: RegExp, [wanted = ""]: string[]): void {
  if (!Array.isArray(list)) notAnOption(option, `a list of ${wanted}`, typeof list);
  for (const one of list as unknown[]) {
    if (typeof one !== "string" || !form.test(one)) notAnOption(option, wanted, one);
  }
}
