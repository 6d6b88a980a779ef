/**
 * A sandbox service as SandboxFusion's: POST /run_code runs a program for real, in a local sandbox, and answers in its form. It fails when it is told to, and counts what it saw.
 */

import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { LocalSandbox } from "@rayling/reward-manager-registry";
import type { ProgramEnd } from "@rayling/reward-manager-registry";

/** What a request comes to instead of an answer. */
export type SandboxFault = 429 | 500 | 503 | 504 | "sandbox-error" | "malformed" | "hang";

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

export class SandboxServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #faultOf: FaultOf;
  readonly requests: RunCodeRequest[] = [];
  #inFlight = 0;
  mostInFlight = 0;

  private constructor(faultOf: FaultOf) {
    this.#faultOf = faultOf;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(faultOf: FaultOf = () => undefined): Promise<SandboxServer> {
    const sandbox = new SandboxServer(faultOf);
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
      if (fault === undefined) send(response, 200, answerOf(await run(request), request));
      else fail(response, fault);
    } catch (error) {
      send(response, 400, { message: String(error) });
    } finally {
      this.#inFlight -= 1;
    }
  }
}

function run(request: RunCodeRequest): Promise<ProgramEnd> {
  const { code, stdin, language } = request;
  const sandbox = new LocalSandbox({
    timeoutMs: 1000 * request.run_timeout,
    memoryLimitMb: request.memory_limit_MB,
  });
  if (language === "python") return sandbox.run({ language, code, stdin });
  if (language === "nodejs") return sandbox.run({ language: "javascript", code, stdin });
  throw new TypeError(`there is no language ${language}`);
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

function fail(response: ServerResponse, fault: SandboxFault): void {
  if (fault === "hang") return;
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
