/**
 * Options of a reward model: its servers, and the table of its router. Rooms of reward-model/ check
 * secrets, addresses and paths. Secrets have no key in files: a configuration is printed and kept.
 */

import { choice, flag, list, number, option, otherwise, own, text, whole } from "../table.ts";
import type { OptionsOf, SettingsOf } from "../table.ts";

/** Which server gets the next request. */
export type RouterStrategy = "least-in-flight" | "round-robin";

const aTimer = number({ least: 1, below: 2 ** 31 });
const mebibyte = 2 ** 20;
/** The environment or another key says it in files. */
const elsewhere = { key: null };

export const routerOptions = {
  /**
   * The address that it listens on. Beyond the loopback only the token guards it, and its traffic
   * is not encrypted. Default: 127.0.0.1.
   */
  host: option(text, otherwise("127.0.0.1")),
  /** The port; 0: any that is free. Default: 0. */
  port: option(number({ least: 0, below: 65_536, whole: true }), 0),
  /**
   * The token that requests must have as `Authorization: Bearer <token>`. 32 characters at least.
   * It is not passed on. Default: a new one.
   */
  token: option(own<string>(), otherwise("a new one"), elsewhere),
  /**
   * The key that the servers demand as `Authorization: Bearer <key>` (`--api-key` of vLLM and
   * SGLang). Default: they demand nothing.
   */
  apiKey: option(own<string>(), otherwise("they demand nothing"), elsewhere),
  /**
   * Paths that are let through besides those of inference, as `/v1/audio/transcriptions`; one that
   * ends in `/*` stands for all below it. Default: .
   */
  allowedPaths: option(list(text), [], elsewhere),
  /**
   * Names of this machine that a request may have in its Host header, besides localhost and
   * addresses. Default: .
   */
  allowedHosts: option(list(text), []),
  /** Which server a request goes to. Default: least-in-flight. */
  strategy: option(choice<RouterStrategy>("least-in-flight", "round-robin"), "least-in-flight"),
  /** Servers that a request is tried on. Default: 3. */
  attempts: option(whole(1), 3),
  // At most half of what a timer can take: a client has twice as long.
  /**
   * The time limit for the beginning of a server's answer, and between two parts of it; a client
   * that takes none of it for twice as long has gone. Default: 300000.
   */
  timeoutMs: option(number({ least: 1, below: 2 ** 30 }), 300_000),
  /** How long a connection to a server may take. Default: 10000. */
  connectTimeoutMs: option(aTimer, 10_000),
  /** Connections to each server. Default: 256. */
  connections: option(whole(1), 256),
  /**
   * Connections from clients. Beyond it an idle one is closed for the new one, or the new one is
   * answered 503. Default: 4096.
   */
  maxConnections: option(whole(1), 4096),
  /** Pending requests; beyond it 503. Default: 4096. */
  maxRequests: option(whole(1), 4096),
  /** Largest body of a request, in bytes: it is kept to be sent again. Default: 67108864. */
  maxBodyBytes: option(whole(1), 64 * mebibyte),
  /**
   * All bodies together of the pending requests, in bytes; beyond it 503. Default: 512 MiB, or
   * `maxBodyBytes` if that is more.
   */
  maxBufferedBytes: option(
    whole(1),
    otherwise("512 MiB, or `maxBodyBytes` if that is more", ({ maxBodyBytes }) =>
      Math.max(512 * mebibyte, Number(maxBodyBytes ?? 0)),
    ),
  ),
  /** The time limit for the head of a request, and of a silent connection. Default: 10000. */
  headersTimeoutMs: option(aTimer, 10_000),
  /** How long a whole request may take to arrive. Default: 60000. */
  requestTimeoutMs: option(aTimer, 60_000),
  /** The path of the servers' health check. Default: /health. */
  healthPath: option(text, "/health"),
  /** How often the health of each server is checked. Default: 5000. */
  healthEveryMs: option(aTimer, 5000),
  /** How long a health check may take. Default: 10000. */
  healthTimeoutMs: option(aTimer, 10_000),
  /** Failures in a row that leave a server out until it is well again. Default: 3. */
  failures: option(whole(1), 3),
  /**
   * Whether the body selects between equal servers, so that equal requests go to the same servers
   * (verl `full_determinism`). Default: false.
   */
  deterministic: option(flag, false),
};
export interface RouterTable extends Readonly<typeof routerOptions> {}

/** Options of the router in front of a reward model's servers. */
export type RouterOptions = OptionsOf<RouterTable>;
export type RouterSettings = SettingsOf<RouterTable>;

export type EngineName = "vllm" | "sglang";

/** Servers that are started here. */
export interface LaunchOptions {
  /** The program of a server. */
  readonly command: string;
  /** `{port}` in them stands for the port, `{index}` for the replica's number. */
  readonly args: readonly string[];
  /** Default 1. */
  readonly replicas?: number;
  /** Environment variables of the server, beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The number of this process's GPUs that each replica sees, exclusively (CUDA_VISIBLE_DEVICES).
   * Default: all.
   */
  readonly gpusPerReplica?: number;
  /**
   * The GPUs of the first replica begin at this one, by its place among those that we see. Default
   * 0.
   */
  readonly firstGpu?: number;
  /** How long a server may take to be well. Default 600,000. */
  readonly startTimeoutMs?: number;
}

/** A reward model: servers that run already, or servers to be started. */
export interface RewardModelOptions {
  /** The engine of the servers. */
  readonly engine: EngineName;
  /** host:port of servers that run already. */
  readonly servers?: readonly string[];
  /** Servers to be started, and ended with the manager. */
  readonly launch?: LaunchOptions;
  /**
   * The key that the servers demand as `Authorization: Bearer <key>`. Only the router sends it.
   * vLLM servers that are started here demand it, too (VLLM_API_KEY). Default:
   * RAYLING_REWARD_MODEL_API_KEY of the environment, or none; a model with a name has a variable of
   * its own, RAYLING_REWARD_MODEL_API_KEY_JUDGE.
   */
  readonly apiKey?: string;
  /**
   * Default of its `token`: RAYLING_ROUTER_TOKEN of the environment (with a name
   * RAYLING_ROUTER_TOKEN_JUDGE), or a new one.
   */
  readonly router?: RouterOptions;
  /**
   * Asleep but for `awake`, while a loop scores, and between `wakeUp` and `sleep` (verl
   * `free_cache_engine`). Default false.
   */
  readonly sleeps?: boolean;
  /** How long waking up or going to sleep may take. Default 300,000. */
  readonly sleepTimeoutMs?: number;
}

/** verl `reward.reward_model`. */
export interface RewardModelUse extends RewardModelOptions {
  /** The name of the model at its servers. */
  readonly model: string;
  /**
   * Folder of its tokenizer and chat template; needed where it scores by itself. Functions of yours
   * get it as `rewardModelTokenizer`.
   */
  readonly tokenizer?: string;
  /**
   * Folder of the policy's tokenizer: responses that come as token ids, and its end of sequence.
   */
  readonly policyTokenizer?: string;
  /** Tries of a request. Default 16. */
  readonly maxRetries?: number;
  /** Time for one attempt. Default: as long as it takes. */
  readonly timeoutMs?: number;
}
