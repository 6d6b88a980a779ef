/** `rayling serve` as a user starts it, and what its clients do: requests over real sockets. */

import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { type Ended, shown, start } from "../command.ts";

export const reward: string = fileURLToPath(
  new URL("../fixtures/served-reward.ts", import.meta.url),
);

type After = (close: () => Promise<void>) => void;

export interface Running {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** All of the requests' log so far. */
  readonly log: () => string;
  readonly signal: (name: NodeJS.Signals) => void;
}

/** Resolves when it listens. @param after when it is to end */
export async function serve(
  flags: readonly string[] = [],
  {
    after = onTestFinished,
    functions = ["--reward", reward],
  }: { readonly after?: After; readonly functions?: readonly string[] } = {},
): Promise<Running> {
  const listen = flags.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
  const started = start("serve", ...functions, "--workers", "1", ...listen, ...flags);
  const { child, ended } = started;
  let log = "";
  child.stderr?.on("data", (text: string) => (log += text));
  const failed = ended.then(({ code, stderr }) => {
    throw new Error(`the server ended with ${code}: ${stderr}`);
  });
  failed.catch(() => undefined);
  const [, url = ""] = await Promise.race([shown(started, /Serving rewards on (\S+)\n/), failed]);
  after(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid ?? 0,
    ended,
    log: () => log,
    signal: (name) => void child.kill(name),
  };
}

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Of JSON. */
  readonly body: unknown;
}

export interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** @param body a text goes as it is, anything else as JSON; undefined for a GET */
export async function ask(url: string, body?: unknown, asking: Asking = {}): Promise<Answered> {
  const { method = body === undefined ? "GET" : "POST", headers = {}, signal } = asking;
  const sent =
    body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const outgoing = request(url, {
    method,
    headers: { "content-type": "application/json", ...headers },
    agent: false,
    ...(signal === undefined ? {} : { signal }),
  });
  outgoing.end(sent);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk as string;
  const isJson =
    text !== "" && response.headers["content-type"]?.startsWith("application/json") === true;
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    body: isJson ? (JSON.parse(text) as unknown) : undefined,
  };
}

export interface Gate {
  readonly url: string;
  /** How often each name was asked for. */
  readonly runs: Map<string, number>;
  /** Resolves when so many requests wait. */
  waiting(count: number): Promise<void>;
  /** Holds what comes from now on, or lets all go on. */
  hold(name: (name: string) => boolean): void;
  open(): void;
}

/** What the reward function asks: it sees every run, and says when it goes on. */
export async function gate(after: After = onTestFinished): Promise<Gate> {
  const runs = new Map<string, number>();
  const held = new Set<ServerResponse>();
  let isHeld = (_name: string): boolean => false;
  let onHeld: () => void = () => undefined;
  let score = 0;
  const answer = (response: ServerResponse): void => {
    score += 1;
    response.end(String(score));
  };
  const server = createServer((incoming, response) => {
    const name = decodeURIComponent(incoming.url?.slice(1) ?? "");
    runs.set(name, (runs.get(name) ?? 0) + 1);
    if (!isHeld(name)) return answer(response);
    held.add(response);
    response.once("close", () => held.delete(response));
    onHeld();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    runs,
    waiting: (count) =>
      new Promise((resolve) => {
        onHeld = () => {
          if (held.size >= count) resolve();
        };
        onHeld();
      }),
    hold: (which) => {
      isHeld = which;
    },
    open: () => {
      isHeld = () => false;
      for (const response of held) answer(response);
      held.clear();
    },
  };
}
