/**
 * The routes of the server and their answers. It gets requests that the guard has let pass, with
 * their bodies; it knows no sockets, no limits of connections and nothing of how the process ends.
 */

import { answerOf, cutUntaken, HttpRefusal } from "@rayling/core/http";
import { pagePolicy } from "@rayling/reward-loop/page";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { Hono } from "hono";
import type { Context } from "hono";
import { stream } from "hono/streaming";
import type { Answer } from "./answer.ts";
import { bodyText, refusalOf } from "./forms/form.ts";
import type { Form, OnInvalid } from "./forms/form.ts";
import { aggregated, figuresRequest } from "./forms/nemo-gym-figures.ts";
import { queryOf } from "./forms/query.ts";
import { batchSchema, sampleOf, sampleSchema } from "./forms/sample.ts";
import { interfacePage, openApi } from "./open-api.ts";
import { asTheyCome, notScored, outcomeText } from "./outcome-lines.ts";
import { checked, fieldsOf, jsonOf } from "./request-body.ts";
import type { RequestNotes, SampleOutcome } from "./request-notes.ts";
import { forms, rolloutPrefix } from "./routes.ts";
import type { Served, ServedScores } from "./served-scores.ts";

export interface AppParts {
  readonly scores: ServedScores;
  readonly onInvalid: OnInvalid;
  readonly maxSamples: number;
  /** Why no samples are taken; undefined while they are. */
  readonly notReady: () => Promise<string | undefined>;
  readonly metrics: () => Promise<string>;
  readonly notes: RequestNotes;
  /** The version of the package. */
  readonly version: string;
}

export interface AppEnv {
  readonly Bindings: {
    readonly body: Uint8Array;
    /** Resolves when the answer is whole, or its client has gone. */
    readonly whole: Promise<void>;
    /** For a client that takes nothing of its answer any more. */
    readonly cut: () => void;
  };
  readonly Variables: { readonly tally: Tally };
}

/** Counts the samples of one request by their outcome. */
interface Tally {
  samples: number;
  valid: number;
  invalid: number;
  replayed: number;
  error: string | undefined;
}

export type App = Hono<AppEnv>;

const prometheus = "text/plain; version=0.0.4; charset=utf-8";

/** A client that takes nothing of a stream for so long has gone. */
const unreadMs = 60_000;

export function createApp(parts: AppParts): App {
  const { version, notReady, metrics } = parts;
  const app: App = new Hono<AppEnv>({
    getPath: (request) => new URL(request.url).pathname.replace(rolloutPrefix, ""),
  });
  app.onError((error) => responseOf(refusalFor(error)));
  app.notFound((c) => notFound(parts, c));
  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", async (c) => {
    const reason = await notReady();
    return reason === undefined ? c.json({ ready: true }) : c.json({ ready: false, reason }, 503);
  });
  app.get("/metrics", async (c) => c.body(await metrics(), 200, { "content-type": prometheus }));
  app.get("/openapi.json", (c) => c.json(openApi(version)));
  app.get("/docs", (c) =>
    c.html(interfacePage(version), 200, {
      "content-security-policy": `${pagePolicy}; frame-ancestors 'none'`,
    }),
  );
  app.post("/seed_session", (c) => c.json({}));
  app.get("/reverify_mode", (c) => c.json("stateless"));
  app.post("/aggregate_metrics", (c) =>
    c.json(aggregated(checked(figuresRequest, jsonOf(c.env.body)))),
  );
  app.post("/score", noted(parts, scoreOne));
  app.post("/score/batch", noted(parts, scoreBatch));
  for (const form of forms)
    app.post(
      form.path,
      noted(parts, (c) => scoreForm(parts, form, c)),
    );
  return app;

  async function scoreOne(c: Context<AppEnv>): Promise<Response> {
    queryOf(c.req.url, {});
    const wire = checked(sampleSchema, jsonOf(c.env.body));
    const [text = ""] = await Promise.all(
      begin(parts, c, [sampleOf(wire)], [wire.id]).map(async (scored) => {
        return outcomeText(await scored, named(wire.id));
      }),
    );
    return json(text);
  }

  async function scoreBatch(c: Context<AppEnv>): Promise<Response> {
    queryOf(c.req.url, {});
    const body = jsonOf(c.env.body);
    refuseMany(fieldsOf(body)["samples"], parts.maxSamples, "samples");
    const { samples: wires } = checked(batchSchema, body);
    const ids = wires.map(({ id }) => id);
    const scores = begin(parts, c, wires.map(sampleOf), ids);
    if (takesLines(c)) return streamed(c, ids, scores);
    const served = await Promise.all(scores);
    const texts = served.map((one, index) => outcomeText(one, named(ids[index])));
    return json(`{"outcomes":[${texts.join(",")}]}`);
  }
}

function notFound({ notes }: AppParts, { req }: Context<AppEnv>): Response {
  const refusal = new HttpRefusal(404, "path_not_allowed", `this endpoint has no path ${req.path}`);
  const { status, code } = refusal;
  notes.addRefused({ method: req.method, path: req.path, status, code });
  return responseOf(refusal);
}

async function scoreForm(parts: AppParts, form: Form, c: Context<AppEnv>): Promise<Response> {
  const { onInvalid, maxSamples } = parts;
  const query = queryOf(c.req.url, form.query);
  const body = jsonOf(c.env.body);
  const samples = form.read(body, query);
  refuseMany(samples, maxSamples, "the request");
  const served = await Promise.all(begin(parts, c, samples, []));
  const answers = served.map(({ text }): Answer => JSON.parse(text));
  const error = answers.find(({ valid }) => !valid)?.error;
  if (error && onInvalid === "fail") throw refusalOf(error);
  return json(bodyText(form.write(answers, onInvalid, body, query)));
}

/**
 * Starts all of them. Throws HttpRefusal before any is started.
 *
 * @param ids keys of single samples; the header's is for the others
 */
function begin(
  { scores, notes }: AppParts,
  c: Context<AppEnv>,
  samples: readonly RewardSample[],
  ids: readonly (string | undefined)[],
): Promise<Served>[] {
  const header = headerKey(c);
  const ofHeader = (index: number): string | undefined =>
    header === undefined || samples.length === 1 ? header : `${header}#${index}`;
  const keys = samples.map((_, index) => ids[index] ?? ofHeader(index));
  const claims = scores.claims(samples, keys);
  const tally = c.get("tally");
  tally.samples = samples.length;
  return claims.map(async (claim) => {
    const served = await scores.score(claim);
    tally.error ??= served.failure;
    const outcome = outcomeOf(served);
    tally[outcome] += 1;
    // Not with its request, whose client may be gone before it is scored.
    notes.addSample(outcome);
    return served;
  });
}

function outcomeOf({ isReplayed, failure }: Served): SampleOutcome {
  if (isReplayed) return "replayed";
  return failure === undefined ? "valid" : "invalid";
}

/** As a text, or as a string of a structured field (RFC 8941). Throws HttpRefusal 400. */
function headerKey(c: Context<AppEnv>): string | undefined {
  const header = c.req.header("idempotency-key");
  if (header === undefined) return undefined;
  const key = header.trim().replace(/^"(.*)"$/, "$1");
  if (key.length > 0 && key.length <= 256) return key;
  throw new HttpRefusal(400, "malformed_request", "Idempotency-Key must have 1 to 256 characters");
}

function refuseMany(list: unknown, most: number, what: string): void {
  if (!Array.isArray(list) || list.length <= most) return;
  throw new HttpRefusal(
    413,
    "too_many_samples",
    `${what} must have at most ${most} samples, and has ${list.length}: send several requests`,
  );
}

const lineTypes = /application\/(?:x-ndjson|jsonl|jsonlines|x-jsonlines)\b/i;

function takesLines(c: Context<AppEnv>): boolean {
  return lineTypes.test(c.req.header("accept") ?? "");
}

function streamed(
  c: Context<AppEnv>,
  ids: readonly (string | undefined)[],
  scores: readonly Promise<Served>[],
): Response {
  const lines = scores.map(async (score, index) => {
    const about = { index, ...named(ids[index]) };
    try {
      return outcomeText(await score, about);
    } catch (error) {
      return outcomeText({ text: notScored(error), isReplayed: false }, about);
    }
  });
  c.header("content-type", "application/x-ndjson");
  return stream(c, async (out) => {
    for await (const text of asTheyCome(lines)) {
      if (out.aborted) return;
      await cutUntaken(out.write(text), c.env.cut, unreadMs);
    }
  });
}

/** Its id, if it has one: answers of a stream come in any order. */
function named(id: string | undefined): Readonly<Record<string, unknown>> {
  return id === undefined ? {} : { id };
}

type Handler = (c: Context<AppEnv>) => Promise<Response>;

/** With a note when its answer is whole: for a stream, when its last sample has been scored. */
function noted({ notes }: AppParts, handle: Handler): Handler {
  return async (c) => {
    const startedAt = performance.now();
    const tally: Tally = { samples: 0, valid: 0, invalid: 0, replayed: 0, error: undefined };
    c.set("tally", tally);
    const path = new URL(c.req.url).pathname.replace(rolloutPrefix, "");
    const done = (status: number): void => {
      notes.addRequest({ path, status, ...tally, ms: performance.now() - startedAt });
    };
    let response: Response;
    try {
      response = await handle(c);
    } catch (error) {
      const refusal = refusalFor(error);
      tally.error ??= refusal.code;
      done(refusal.status);
      return responseOf(refusal);
    }
    if (response.headers.get("content-type") !== "application/x-ndjson") done(response.status);
    else void doneWith(c.env.whole, () => done(response.status));
    return response;
  };
}

async function doneWith(whole: Promise<void>, done: () => void): Promise<void> {
  await whole;
  done();
}

function json(text: string): Response {
  return new Response(text, { headers: { "content-type": "application/json" } });
}

/** An error that is no refusal is the server's own fault, and its text is not for clients. */
function refusalFor(error: unknown): HttpRefusal {
  if (error instanceof HttpRefusal) return error;
  return new HttpRefusal(500, "internal_error", "the server failed");
}

function responseOf(refusal: HttpRefusal): Response {
  const { headers, body } = answerOf(refusal);
  return new Response(body, { status: refusal.status, headers });
}
