/**
 * Ray's Jobs API: packages and jobs. By node:http, because Ray takes the headers of `fetch` for
 * those of a browser and refuses them.
 */
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import {
  asError,
  AuthenticationError,
  deadline,
  RaySystemError,
  reasonOf,
} from "@rayling/core/cluster";

/** A job as Ray shows it. */
export interface JobState {
  readonly status: string;
  readonly message: string;
}

/** A job to start. */
export interface JobSubmission {
  readonly entrypoint: string;
  readonly runtimeEnv: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

const over: ReadonlySet<string> = new Set(["FAILED", "STOPPED", "SUCCEEDED"]);

/** For a head whose own agent is about to start, which takes Ray up to half a minute. */
const mostAttempts = 60;
const attemptMs = 500;

/** The longest text of an answer that a message shows. */
const longestShown = 500;

/** How long the stop of a job may take, in ms: it ends by itself without its driver. */
const stopMs = 5000;

/** The time that an answer has besides, in ms. */
const graceMs = 1000;

/** The limits of requests to a dashboard. */
export interface JobsLimits {
  /** How long the dashboard may neither take nor send anything during a request, in ms. */
  readonly timeoutMs: number;
  /** Ends all requests and pauses, but for stops of jobs. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Every method rejects with RaySystemError, also when the dashboard stands still; with
 * AuthenticationError for the token, and with the reason of the signal.
 */
export class JobsApi {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #limits: JobsLimits;

  /** @param url that of Ray's dashboard, without a slash at its end */
  constructor(url: string, token: string | undefined, limits: JobsLimits) {
    this.url = url;
    this.#token = token;
    this.#limits = limits;
  }

  /** Waits between two requests. */
  async pause(ms: number): Promise<void> {
    const { signal } = this.#limits;
    // An abort while it waits has a reason, which the next line throws.
    await pause(ms, undefined, { ref: false, signal }).catch(() => undefined);
    signal?.throwIfAborted();
  }

  /** Puts a package into Ray's store, unless it is there. Resolves with its address. */
  async upload(name: string, content: () => Promise<Buffer>): Promise<string> {
    const path = `/api/packages/gcs/${name}`;
    const { status } = await this.#send("GET", path);
    if (status === 404) await this.#checked("PUT", path, await content());
    else if (status >= 300) throw this.#refused("GET", path, { status, text: "" });
    return `gcs://${name}`;
  }

  /** Starts a job. Resolves with its id. */
  async submit({ entrypoint, runtimeEnv, metadata }: JobSubmission): Promise<string> {
    const job = { entrypoint, runtime_env: runtimeEnv, metadata };
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#send("POST", "/api/jobs/", job);
      const isBusy = answer.status >= 500 && answer.text.includes("No available agent");
      if (isBusy && attempt < mostAttempts) {
        await this.pause(attemptMs);
        continue;
      }
      if (answer.status >= 300) throw this.#refused("POST", "/api/jobs/", answer);
      return this.#textIn(answer, "submission_id", "POST /api/jobs/");
    }
  }

  async stop(jobId: string): Promise<void> {
    const path = `/api/jobs/${jobId}/stop`;
    const timeoutMs = Math.min(stopMs, this.#limits.timeoutMs);
    const answer = await this.#send("POST", path, undefined, { timeoutMs });
    if (answer.status >= 300) throw this.#refused("POST", path, answer);
  }

  async state(jobId: string): Promise<JobState> {
    const path = `/api/jobs/${jobId}`;
    const said = await this.#checked("GET", path);
    return {
      status: this.#textIn(said, "status", `GET ${path}`),
      message: textOf(parsed(said.text), "message") ?? "",
    };
  }

  async logs(jobId: string): Promise<string> {
    const path = `/api/jobs/${jobId}/logs`;
    return this.#textIn(await this.#checked("GET", path), "logs", `GET ${path}`);
  }

  /** Whether the job has ended. */
  static isOver({ status }: JobState): boolean {
    return over.has(status);
  }

  async #checked(method: string, path: string, body?: Buffer): Promise<Answer> {
    const answer = await this.#send(method, path, body);
    if (answer.status >= 300) throw this.#refused(method, path, answer);
    return answer;
  }

  /** @throws RaySystemError when the answer has no such text, so that it is not Ray's */
  #textIn({ text }: Answer, name: string, request: string): string {
    const found = textOf(parsed(text), name);
    if (found !== undefined) return found;
    throw new RaySystemError(
      `what answers ${request} at ${this.url} is no Ray dashboard, or something stands before it: the answer has no ${name}: ${JSON.stringify(text.slice(0, longestShown))}`,
    );
  }

  #refused(method: string, path: string, { status, text }: Answer): Error {
    if (status === 401 || status === 403) {
      return new AuthenticationError(`the Ray cluster at ${this.url} (see RAY_AUTH_TOKEN)`);
    }
    const said = text.trim().split("\n").at(-1) ?? "";
    return new RaySystemError(
      `the Ray cluster at ${this.url} answers ${status} to ${method} ${path}: ${said.slice(0, longestShown)}`,
    );
  }

  #send(
    method: string,
    path: string,
    body?: Buffer | object,
    { timeoutMs, signal }: JobsLimits = this.#limits,
  ): Promise<Answer> {
    const isBinary = Buffer.isBuffer(body);
    const content = isBinary ? body : Buffer.from(body === undefined ? "" : JSON.stringify(body));
    const headers = {
      "content-type": isBinary ? "application/octet-stream" : "application/json",
      "content-length": content.length,
      ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
    };
    const request = this.url.startsWith("https:") ? requestHttps : requestHttp;
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        if (signal?.aborted === true) return reject(asError(signal.reason));
        const problem = `the Ray cluster at ${this.url} cannot be reached: ${reasonOf(error)}`;
        reject(new RaySystemError(problem, { cause: error }));
      };
      const options = { method, headers, agent: false, timeout: timeoutMs, signal } as const;
      const sent = request(`${this.url}${path}`, options, (answer) => {
        const parts: Buffer[] = [];
        answer
          .on("data", (part: Buffer) => parts.push(part))
          .on("error", failed)
          .on("end", () => {
            const text = Buffer.concat(parts).toString();
            resolve({ status: answer.statusCode ?? 0, text });
          });
      });
      const late = (socket: Socket): void => {
        const seenBytes = socket.bytesRead;
        // A driver that was busy reads first what has come meanwhile.
        deadline(Math.min(timeoutMs, graceMs), () => {
          if (socket.bytesRead !== seenBytes) return;
          failed(new Error(`it has not answered ${method} ${path} for ${timeoutMs / 1000} s`));
          sent.destroy();
        });
      };
      // The request itself says so only once.
      sent.once("socket", (socket) => socket.on("timeout", () => late(socket)));
      sent.on("error", failed).end(content);
    });
  }
}

/** Returns undefined for what is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf(said: unknown, name: string): string | undefined {
  const value = typeof said === "object" && said !== null ? Reflect.get(said, name) : undefined;
  return typeof value === "string" ? value : undefined;
}
