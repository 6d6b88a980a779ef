/**
 * Sends one POST and resolves when its answer begins: by the `request` of undici, which Node has
 * inside, because its fetch takes three to five times as much CPU for a small answer
 * (bench/README.md). Both go through the dispatcher of the thread, which may be a user's: a proxy
 * for example.
 *
 * fetch sends what `request` cannot: a redirected POST (once more, as `request` follows no
 * redirect), a URL with credentials or another protocol, and every request where a user has
 * replaced the global `fetch`.
 */

import { pipeline, Readable } from "node:stream";
import type { Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** It has a deadline of its own, so that the five minutes of Node do not hold. */
  readonly isPatient: boolean;
}

/** An answer whose body is still to come. */
export interface Answer {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: AsyncIterable<Uint8Array>;
}

type Dispatcher = NonNullable<RequestInit["dispatcher"]>;

/** The global symbol under which undici keeps the dispatcher of a thread. */
const place = Symbol.for("undici.globalDispatcher.1");

const { fetch: own } = globalThis;

/** Rejects as the dispatcher does, or as fetch does: with a TypeError, and its reason as cause. */
export async function send(post: Post): Promise<Answer> {
  const dispatcher = dispatcherOfThread();
  const target = targetOf(post.url);
  // Not every version of Node, and not every dispatcher of a user, has `request`.
  const hasRequest = typeof dispatcher?.request === "function";
  if (!hasRequest || target === undefined || globalThis.fetch !== own) {
    return await fetched(post, dispatcher);
  }
  const { statusCode, headers, body } = await dispatcher.request({
    ...target,
    method: "POST",
    headers: { accept: "*/*", "user-agent": "node", ...post.headers },
    body: post.body ?? null,
    ...(post.signal === undefined ? {} : { signal: post.signal }),
    ...(post.isPatient ? noTimeouts : {}),
  });
  const known = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) known.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  if (redirects.has(statusCode) && known.has("location")) {
    await body.dump();
    return await fetched(post, dispatcher);
  }
  return { status: statusCode, headers: known, body: decoded(body, known.get("content-encoding")) };
}

/** Reads a body, and no more of it than that: undefined where there is more. */
export async function bytesOf(
  body: Answer["body"],
  mostBytes: number,
): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let left = mostBytes;
  const take = (chunk: Uint8Array): boolean => {
    left -= chunk.length;
    chunks.push(chunk);
    return left >= 0;
  };
  if (body instanceof Readable) await readAll(body, take);
  else for await (const chunk of body) if (!take(chunk)) break;
  return left < 0 ? undefined : Buffer.concat(chunks);
}

/** By its events: the iterator of a stream takes longer than all the rest of a small answer. */
function readAll(body: Readable, take: (chunk: Uint8Array) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    body.on("data", (chunk: Uint8Array) => {
      if (take(chunk)) return;
      resolve();
      body.destroy();
    });
    body.on("end", resolve);
    body.on("error", reject);
    body.on("close", () => reject(new TypeError("terminated", { cause: brokeOff })));
  });
}

const brokeOff = new Error("the answer broke off");

function dispatcherOfThread(): Dispatcher | undefined {
  // Node creates it at the first access to a name of fetch.
  return Headers && (globalThis as { readonly [place]?: Dispatcher })[place];
}

const noTimeouts = { headersTimeout: 0, bodyTimeout: 0 };
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Undefined for a URL that fetch refuses, or that means something else. */
function targetOf(url: string): { readonly origin: string; readonly path: string } | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, username, password, origin, pathname, search } = new URL(url);
  const isPlain = username === "" && password === "" && /^https?:$/.test(protocol);
  return isPlain ? { origin, path: `${pathname}${search}` } : undefined;
}

async function fetched(
  { url, headers, body, signal, isPatient }: Post,
  dispatcher: Dispatcher | undefined,
): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    ...(isPatient && dispatcher !== undefined ? { dispatcher: patient(dispatcher) } : {}),
  });
  return {
    status: response.status,
    headers: new Map(response.headers),
    body: response.body ?? nothing(),
  };
}

/** Returns the dispatcher without the five minutes of Node's fetch: a judge may take longer. */
function patient(dispatcher: Dispatcher): Dispatcher {
  const dispatch: Dispatcher["dispatch"] = (options, handler) =>
    dispatcher.dispatch({ ...options, ...noTimeouts }, handler);
  return Object.create(dispatcher, { dispatch: { value: dispatch } }) as Dispatcher;
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** A server may pack its answer though nobody has asked for that. */
function decoded(body: Readable, encoding: string | undefined): AsyncIterable<Uint8Array> {
  const unpack = encoding === undefined ? undefined : unpackers.get(encoding.trim().toLowerCase());
  return unpack === undefined ? body : unpacked(body, unpack());
}

async function* unpacked(body: Readable, unpacker: Transform): AsyncGenerator<Uint8Array> {
  try {
    const parts: AsyncIterable<Uint8Array> = pipeline(body, unpacker, () => undefined);
    yield* parts;
  } catch (error) {
    // As fetch says it: nobody takes it for a mistake of the score function.
    throw new TypeError("terminated", { cause: error });
  }
}

/** As browsers do: of a body that ends too early, the part that arrived is read. */
const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };

const unpackers: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", () => createGunzip(lenient)],
  ["x-gzip", () => createGunzip(lenient)],
  ["deflate", () => createInflate(lenient)],
  ["br", () => createBrotliDecompress()],
]);
