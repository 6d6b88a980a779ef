/** Settings of a policy behind an OpenAI-compatible server: plain data, checked once, here. */

import { fieldOf, isRecord } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";

/** Settings of an `OpenAIPolicy`. */
export interface OpenAIPolicySettings {
  /** Address of the API: `http://host:port/v1`; a bare host:port stands for that. */
  readonly baseUrl: string;
  /** The name of the model at the server. */
  readonly model: string;
  /** Sent as a bearer token with each request. Default: none. */
  readonly apiKey?: string;
  /** Further headers of each request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Any other field of the requests, by the API's own name: `{ return_token_ids: true }` for
   * vLLM's.
   */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Requests at once. Default 32. */
  readonly maxConcurrency?: number;
  /**
   * Samples of a prompt that one request asks for (`n`). Default 1: each is there when it is
   * finished, and none waits for another.
   */
  readonly samplesPerRequest?: number;
  /** Tries of a request in all. Default 16, as verl's. */
  readonly maxRetries?: number;
  /** Time limit of an attempt. Default: none. */
  readonly timeoutMs?: number;
  /** Length of one second of a pause before the next attempt; for tests. Default 1,000. */
  readonly secondMs?: number;
  /** A model's folder with its tokenizer and chat template: prompts are counted by it. */
  readonly tokenizer?: string;
  /** Receives the updates. Default: the policy does not train. */
  readonly updater?: UpdaterSpec;
}

/** A function of a module of yours that makes a `PolicyUpdater`. */
export interface UpdaterSpec {
  /** Relative to `baseDirectory`, or `pkg:name`. */
  readonly path: string;
  /** Name of the module's export. Default "createUpdater". */
  readonly name?: string;
  /** Argument of the export. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Default: the working directory. */
  readonly baseDirectory?: string;
}

/** The longest delay that timers take: 24 days. */
export const longestMs = 2 ** 31 - 1;

/** @throws TrainerInputError that names the setting */
export function checkOpenAISettings(settings: OpenAIPolicySettings): void {
  const { baseUrl, model, maxConcurrency = 1, samplesPerRequest = 1, maxRetries = 1 } = settings;
  const { apiKey, tokenizer, headers = {}, body = {}, updater, timeoutMs = 1 } = settings;
  const needed = {
    baseUrl,
    model,
    ...(updater === undefined ? {} : { "updater.path": fieldOf(updater, "path") }),
  };
  const texts = {
    ...needed,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(tokenizer === undefined ? {} : { tokenizer }),
  };
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text === "string" && text !== "") continue;
    // A key is a secret, whatever it is.
    const shown = name === "apiKey" ? "what it is" : JSON.stringify(text);
    throw new TrainerInputError(name, `${name} must be a text, not ${shown}`);
  }
  for (const [name, fields] of Object.entries({ headers, body })) {
    if (isRecord(fields)) continue;
    throw new TrainerInputError(name, `${name} must be an object, not ${JSON.stringify(fields)}`);
  }
  for (const [name, count] of Object.entries({ maxConcurrency, samplesPerRequest, maxRetries })) {
    if (Number.isSafeInteger(count) && count > 0) continue;
    throw new TrainerInputError(name, `${name} must be a whole number of at least 1, not ${count}`);
  }
  if (timeoutMs > 0 && timeoutMs <= longestMs) return;
  const problem = `timeoutMs must be above 0 and at most ${longestMs}, not ${timeoutMs}`;
  throw new TrainerInputError("timeoutMs", problem);
}
