/** Views of the server, live as a stream of events, or once; or of the data of this file. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { report } from "./report.ts";

export interface Live<Data> {
  /** Undefined until the first answer. */
  readonly data: Data | undefined;
  /** Why there is no news. */
  readonly problem: string | undefined;
}

const noServer = "The server does not answer: the session may have ended.";

/** A server that is alive answers sooner, unless the browser has no connection left for it. */
const patienceMs = 20_000;
const tooLate =
  "The server has not answered for 20 s: it is busy, or this browser shows the page in six windows and connects no more of them.";

/** Follows a view while it is shown. The last data stays when the server is gone. */
export const useLive: <Data>(name: string, query?: string) => Live<Data> =
  report === undefined ? useServer : useReport;

function useReport<Data>(name: string, query: string = ""): Live<Data> {
  return useMemo(() => {
    try {
      const data = report?.answer(name, new URLSearchParams(query)) as Data;
      return { data, problem: undefined };
    } catch (error) {
      return { data: undefined, problem: String(error) };
    }
  }, [name, query]);
}

/** A hidden tab follows nothing: a browser has six connections to a server, for all its tabs. */
function useServer<Data>(name: string, query: string = ""): Live<Data> {
  const [live, setLive] = useState<Live<Data> & { readonly of: string }>();
  const of = `api/${name}/events?${query}`;
  useEffect(() => {
    const onProblem = (problem: string): void => {
      setLive((before) => ({ data: before?.data, problem, of }));
    };
    const onData = (text: string): void => {
      setLive({ data: JSON.parse(text) as Data, problem: undefined, of });
    };
    let stop: (() => void) | undefined;
    const followIfSeen = (): void => {
      stop?.();
      stop = document.hidden ? undefined : follow(of, onData, onProblem);
    };
    followIfSeen();
    document.addEventListener("visibilitychange", followIfSeen);
    return () => {
      document.removeEventListener("visibilitychange", followIfSeen);
      stop?.();
    };
  }, [of]);
  return { data: live?.data, problem: live?.of === of ? live.problem : undefined };
}

/** Returns what ends it. */
function follow(
  events: string,
  onData: (text: string) => void,
  onProblem: (problem: string) => void,
): () => void {
  const source = new EventSource(events);
  const timer = setTimeout(() => onProblem(tooLate), patienceMs);
  const stop = (): void => {
    clearTimeout(timer);
    source.close();
  };
  source.addEventListener("message", ({ data }: MessageEvent<string>) => {
    clearTimeout(timer);
    onData(data);
  });
  source.addEventListener("failed", ({ data }: MessageEvent<string>) => {
    stop();
    onProblem((JSON.parse(data) as { readonly message: string }).message);
  });
  source.addEventListener("error", () => {
    clearTimeout(timer);
    onProblem(noServer);
  });
  return stop;
}

/** Rejects with the message of the server. */
export async function ask<Data>(name: string, query: string = ""): Promise<Data> {
  if (report !== undefined) return report.answer(name, new URLSearchParams(query)) as Data;
  return (await answerOf(`api/${name}?${query}`)) as Data;
}

/** Rejects with the message of the server. */
export async function send(name: string, body: unknown): Promise<void> {
  const headers = { "content-type": "application/json" };
  await answerOf(`api/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function answerOf(path: string, request: RequestInit = {}): Promise<unknown> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), patienceMs);
  try {
    const response = await fetch(path, { ...request, signal: late.signal });
    const answer = (await response.json()) as { readonly error?: { readonly message: string } };
    if (response.ok) return answer;
    throw new Error(answer.error?.message ?? `the server answered ${response.status}`);
  } catch (cause) {
    if (late.signal.aborted) throw new Error(tooLate, { cause });
    // The promise of `fetch` rejects so.
    if (cause instanceof TypeError) throw new Error(noServer, { cause });
    throw cause;
  } finally {
    clearTimeout(timer);
  }
}
