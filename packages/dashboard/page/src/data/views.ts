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

function useServer<Data>(name: string, query: string = ""): Live<Data> {
  const [live, setLive] = useState<Live<Data> & { readonly of: string }>();
  const of = `api/${name}/events?${query}`;
  useEffect(() => {
    const source = new EventSource(of);
    source.addEventListener("message", ({ data }: MessageEvent<string>) => {
      setLive({ data: JSON.parse(data) as Data, problem: undefined, of });
    });
    source.addEventListener("failed", ({ data }: MessageEvent<string>) => {
      const { message } = JSON.parse(data) as { readonly message: string };
      source.close();
      setLive((before) => ({ data: before?.data, problem: message, of }));
    });
    source.addEventListener("error", () => {
      setLive((before) => ({ data: before?.data, problem: noServer, of }));
    });
    return () => source.close();
  }, [of]);
  return { data: live?.data, problem: live?.of === of ? live.problem : undefined };
}

/** Rejects with the message of the server. */
export async function ask<Data>(name: string, query: string = ""): Promise<Data> {
  if (report !== undefined) return report.answer(name, new URLSearchParams(query)) as Data;
  return (await answerOf(fetch(`api/${name}?${query}`))) as Data;
}

/** Rejects with the message of the server. */
export async function send(name: string, body: unknown): Promise<void> {
  const headers = { "content-type": "application/json" };
  await answerOf(fetch(`api/${name}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answerOf(asking: Promise<Response>): Promise<unknown> {
  const response = await asking.catch((cause: unknown) => {
    throw new Error(noServer, { cause });
  });
  const answer = (await response.json()) as { readonly error?: { readonly message: string } };
  if (response.ok) return answer;
  throw new Error(answer.error?.message ?? `the server answered ${response.status}`);
}
