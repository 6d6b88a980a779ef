/**
 * A sandbox service as SandboxFusion's: POST /run_code runs a program for real, in a local sandbox, and answers in its form. It fails when it is told to, and counts what it saw.
 */

import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { LocalSandbox } from "@rayling/reward-manager-registry";
import type { Program, ProgramEnd } from "@rayling/reward-manager-registry";

/** What a request comes to instead of an answer; an object is the body of one. */
export type SandboxFault =
  | 429
  | 500
  | 503
  | 504
  | "sandbox-error"
  | "malformed"
  | "reset"
  | "hang"
  | object;

export interface RunCodeRequest {
  readonly code: string;
  readonly stdin: string;
  readonly language: string;
  readonly run_timeout: number;
  readonly compile_timeout: number;
  readonly memory_limit_MB: number;
}

/** What the n-th request comes to, from 0; undefined: its answer. */
export type FaultOf = (count: number, request: RunCodeRequest) => SandboxFault | undefined;

/** What runs the programs. */
export interface ProgramRunner {
  run(program: Program): Promise<ProgramEnd>;
}

export class SandboxServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #faultOf: FaultOf;
  readonly #runner: ProgramRunner | undefined;
  readonly requests: RunCodeRequest[] = [];
  #inFlight = 0;
  mostInFlight = 0;

  private constructor(faultOf: FaultOf, runner: ProgramRunner | undefined) {
    this.#faultOf = faultOf;
    this.#runner = runner;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** @param runner default: a local sandbox with the limits that the request asks for */
  static async start(
    faultOf: FaultOf = () => undefined,
    runner?: ProgramRunner,
  ): Promise<SandboxServer> {
    const sandbox = new SandboxServer(faultOf, runner);
    sandbox.#server.listen(0, "127.0.0.1");
    await once(sandbox.#server, "listening");
    return sandbox;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/run_code`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight);
    try {
      let text = "";
      for await (const chunk of message) text += String(chunk);
      const request = JSON.parse(text) as RunCodeRequest;
      const fault = this.#faultOf(this.requests.length, request);
      this.requests.push(request);
      if (fault === undefined) send(response, 200, answerOf(await this.#run(request), request));
      else fail(response, fault);
    } catch (error) {
      send(response, 400, { message: String(error) });
    } finally {
      this.#inFlight -= 1;
    }
  }

  async #run(request: RunCodeRequest): Promise<ProgramEnd> {
    const { code, stdin, language } = request;
    const runner = this.#runner ?? sandboxOf(request);
    if (language === "python") return runner.run({ language, code, stdin });
    if (language === "nodejs") return runner.run({ language: "javascript", code, stdin });
    throw new TypeError(`there is no language ${language}`);
  }
}

/** By limits: each finds out by itself where Python is, which takes longer than most programs. */
const sandboxes = new Map<string, LocalSandbox>();

function sandboxOf({ run_timeout, memory_limit_MB }: RunCodeRequest): LocalSandbox {
  const key = `${run_timeout} ${memory_limit_MB}`;
  const known = sandboxes.get(key);
  if (known !== undefined) return known;
  const sandbox = new LocalSandbox({
    timeoutMs: 1000 * run_timeout,
    memoryLimitMb: memory_limit_MB,
    // How many requests there are at once is the business of who asks.
    maxConcurrent: 1000,
  });
  sandboxes.set(key, sandbox);
  return sandbox;
}

function answerOf(end: ProgramEnd, { language }: RunCodeRequest): object {
  const { exitCode, stdout, stderr, durationMs } = end;
  const isLate = end.status === "timeout";
  const isGood = !isLate && exitCode === 0;
  return {
    status: isGood ? "Success" : "Failed",
    message: "",
    // Neither language is compiled by it.
    compile_result: null,
    run_result: {
      status: isLate ? "TimeLimitExceeded" : "Finished",
      execution_time: durationMs / 1000,
      return_code: isLate ? null : (exitCode ?? 1),
      stdout,
      stderr,
    },
    executor_pod_name: null,
    files: {},
    language,
  };
}

/** Its status is one of HTTP where it is a number. */
interface GivenAnswer {
  readonly status?: number | string;
  readonly headers?: Readonly<Record<string, string>>;
}

function fail(response: ServerResponse, fault: SandboxFault): void {
  if (fault === "hang") return;
  if (fault === "reset") return void response.destroy();
  if (typeof fault === "object") {
    const { status = 200, headers = {}, ...body } = fault as GivenAnswer;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    return send(response, typeof status === "number" ? status : 200, { ...body, status });
  }
  if (fault === "malformed") return void response.end("<html>");
  if (fault === "sandbox-error") {
    return send(response, 200, { status: "SandboxError", message: "no room", run_result: null });
  }
  response.setHeader("retry-after", "0");
  send(response, fault, { message: "not now" });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
