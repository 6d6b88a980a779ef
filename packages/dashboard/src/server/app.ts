/**
 * The paths of the page and their answers: its files, its views once or as a stream of events, and
 * the one thing that it can do to a session. It knows no sockets and no tokens.
 */
import { answerOf, cutUntaken, HttpRefusal } from "@rayling/core/http";
import { Hono } from "hono";
import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import { setTimeout as sleep } from "node:timers/promises";
import type { View, Views } from "../views/view.ts";
import { pageFiles, pagePolicy } from "./page-files.ts";

export interface AppParts {
  readonly views: Views;
  /** Kills an actor; undefined where there is no session. */
  readonly kill?: (actorId: string) => Promise<void>;
  /** How long a client may take nothing of an event stream. Default 30 s. */
  readonly unreadMs?: number;
}

export interface AppEnv {
  readonly Bindings: {
    readonly body: Uint8Array;
    /** Aborted when the answer is complete, or its client has gone. */
    readonly signal: AbortSignal;
    /** Ends the connection. */
    readonly cut: () => void;
  };
}

export interface App {
  readonly fetch: Hono<AppEnv>["fetch"];
  /** Its paths, for the guard. */
  readonly routes: readonly { readonly method: string; readonly path: string }[];
}

/** How often a view is looked at while a page shows it. */
const everyMs = 1000;

/** A stream without news says so, so that a connection that is gone is noticed. */
const quietMs = 15_000;

/** A client that takes nothing of an answer for so long has gone. */
export const standardUnreadMs = 30_000;

export function createApp({ views, kill, unreadMs = standardUnreadMs }: AppParts): App {
  const app = new Hono<AppEnv>();
  app.onError((error) => {
    const isKnown = error instanceof HttpRefusal;
    const refusal = isKnown ? error : new HttpRefusal(500, "internal_error", "the page failed");
    const { headers, body } = answerOf(refusal);
    return new Response(body, { status: refusal.status, headers });
  });
  app.get("/", async (c) => await fileOf(c, "index.html"));
  for (const name of ["page.js", "page.css"]) {
    app.get(`/${name}`, async (c) => await fileOf(c, name));
  }
  app.get("/api/rooms", (c) => c.json({ rooms: Object.keys(views), canKill: kill !== undefined }));
  for (const [name, view] of Object.entries(views)) {
    app.get(`/api/${name}`, async (c) => c.json(await view(queryOf(c))));
    app.get(`/api/${name}/events`, (c) => eventsOf(c, view, unreadMs));
  }
  if (kill !== undefined) {
    app.post("/api/kill", async (c) => {
      await kill(actorIdIn(c.env.body));
      return c.json({});
    });
  }
  return { fetch: app.fetch, routes: app.routes.map(({ method, path }) => ({ method, path })) };
}

async function fileOf(c: Context<AppEnv>, name: string): Promise<Response> {
  const { type, text } = (await pageFiles()).get(name) ?? missingFile();
  return c.body(text, 200, {
    "content-type": type,
    "content-security-policy": pagePolicy,
    "referrer-policy": "no-referrer",
  });
}

function missingFile(): never {
  throw new HttpRefusal(500, "page_missing", "the files of the page are not where they belong");
}

function queryOf(c: Context<AppEnv>): URLSearchParams {
  return new URL(c.req.url).searchParams;
}

/**
 * Sends the view now and whenever it has changed. Ends with the first look that fails. A client
 * that does not read keeps no place: only so many connections are taken.
 */
function eventsOf(c: Context<AppEnv>, view: View, unreadMs: number): Response {
  const query = queryOf(c);
  const { signal, cut } = c.env;
  return streamSSE(c, async (out) => {
    const taken = (written: Promise<unknown>): Promise<void> => cutUntaken(written, cut, unreadMs);
    let last = "";
    let quiet = 0;
    try {
      while (!signal.aborted) {
        const data = JSON.stringify(await view(query));
        quiet += everyMs;
        if (data !== last) await taken(out.writeSSE({ data }));
        else if (quiet >= quietMs) await taken(out.write(": quiet\n\n"));
        if (data !== last || quiet >= quietMs) quiet = 0;
        last = data;
        await sleep(everyMs, undefined, { ref: false, signal });
      }
    } catch (error) {
      if (signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      await taken(out.writeSSE({ event: "failed", data: JSON.stringify({ message }) }));
    }
  });
}

/** Throws HttpRefusal 400. */
function actorIdIn(body: Uint8Array): string {
  const value = jsonIn(body);
  const id = typeof value === "object" && value !== null && "actorId" in value && value.actorId;
  if (typeof id === "string") return id;
  throw new HttpRefusal(400, "invalid_request", "the body must be { actorId }, a text");
}

function jsonIn(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
