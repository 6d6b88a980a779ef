/**
 * A server that judges: OpenAI's chat completions, vLLM's classify and SGLang's embeddings, by a reward function in place of a model. It takes its time, fails in every way
 * that servers do, and keeps limits of its own; all by a seed, so that a run can be repeated.
 *
 * Whether a request is to fail is decided by its text, and how often: after that it is answered. So every client that tries again comes to the same end.
 * As a program: `node test/servers/judge-server.ts '{"latency": {"uniform": [1, 40]}}'` prints its address as JSON.
 */

import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import { loadComputeScore, scoreSample } from "@rayling/reward-manager-registry";
import type { ComputeScore } from "@rayling/reward-manager-registry";
import { LimitCounter } from "./own-limits.ts";
import type { OwnLimits, Place, Violation } from "./own-limits.ts";
import { chanceOf } from "./seeded.ts";

export type Latency =
  | { readonly uniform: readonly [minMs: number, maxMs: number] }
  | { readonly lognormal: { readonly meanMs: number; readonly sigma: number } };

export type Fault =
  /** 429 with a time to come back. */
  | "refuse"
  /** 500. */
  | "error"
  /** 503 with a time to come back. */
  | "overload"
  /** No answer at all. */
  | "hang"
  /** The head of an answer, and then nothing for long. */
  | "slow"
  /** The connection ends before an answer, or in the middle of it. */
  | "cut"
  | "cut-body"
  /** An answer that is no JSON, or lacks what matters. */
  | "malformed"
  | "empty";

export const faults: readonly Fault[] = [
  "refuse",
  "error",
  "overload",
  "hang",
  "slow",
  "cut",
  "cut-body",
  "malformed",
  "empty",
];

export type Speech = "prose" | "fenced";

export interface JudgeOptions {
  readonly seed?: number;
  readonly port?: number;
  /** Default: none. */
  readonly latency?: Latency;
  readonly limits?: OwnLimits;
  /** Of all texts, the share that fails so. */
  readonly faults?: Readonly<Partial<Record<Fault, number>>>;
  /** Of all answers, the share that is no clean JSON: words alone, or JSON in a fence within words. Another one for the same text may be clean. Default: none. */
  readonly speech?: Readonly<Partial<Record<Speech, number>>>;
  /** How often a text fails that does. Default 1. */
  readonly timesPerText?: number;
  /** Answers say what is left of the requests of a minute, and when all of them are there again. */
  readonly announces?: boolean;
  /** Everything is answered with 503 for so long, now and then. */
  readonly brownOuts?: { readonly everyMs: number; readonly forMs: number };
  /** PATH[:name] of the reward function that judges. Default: the answers' last numbers have to be equal. */
  readonly reward?: string;
}

/** What it saw. */
export interface JudgeStats {
  readonly requests: number;
  readonly answered: number;
  readonly failed: Readonly<Partial<Record<Fault | "brown-out", number>>>;
  readonly violations: Readonly<Partial<Record<Violation, number>>>;
  readonly mostInFlight: number;
  readonly isAsleep: boolean;
  readonly wakeUps: number;
  /** How often each text was answered with a score, at most. */
  readonly mostPerText: number;
}

/** What a judge is asked, as the content of the last message (JSON). */
export interface Question {
  readonly solution: string;
  readonly groundTruth: unknown;
}

const comeBack = { "retry-after-ms": "20" };

/**
 * Turns of the event loop in which it is heard of clients that have gone before. Their end and the next client's request may be read in one turn, by a server that had no CPU for a while; then the connection
 * is ended from this side, too, and closed.
 */
const turnsToGo = 5;

export class JudgeServer {
  readonly #options: JudgeOptions;
  readonly #score: ComputeScore;
  readonly #limits: LimitCounter;
  readonly #server: Server;
  readonly #startedMs: number = performance.now();
  readonly #tries: Map<string, number> = new Map();
  readonly #answers: Map<string, number> = new Map();
  /** Who came to a full house, as long as clients may have gone of whom it was not heard yet. */
  readonly #atTheDoor: ((place: Place | Violation) => void)[] = [];
  #isAsleep = false;
  #wakeUps = 0;
  readonly #stats = {
    requests: 0,
    answered: 0,
    failed: {} as Partial<Record<Fault | "brown-out", number>>,
    violations: {} as Partial<Record<Violation, number>>,
  };

  private constructor(options: JudgeOptions, score: ComputeScore) {
    this.#options = options;
    this.#score = score;
    this.#limits = new LimitCounter(options.limits ?? {});
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(options: JudgeOptions = {}): Promise<JudgeServer> {
    const { reward, port = 0 } = options;
    const score = reward === undefined ? lastNumbers : await loadComputeScore(reward);
    const judge = new JudgeServer(options, score);
    await new Promise<void>((resolve, reject) => {
      judge.#server.once("error", reject);
      judge.#server.listen(port, "127.0.0.1", resolve);
    });
    return judge;
  }

  /** host:port */
  get address(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `${address}:${port}`;
  }

  stats(): JudgeStats {
    const { requests, answered, failed, violations } = this.#stats;
    const mostPerText = Math.max(0, ...this.#answers.values());
    return {
      isAsleep: this.#isAsleep,
      wakeUps: this.#wakeUps,
      requests,
      answered,
      failed,
      violations,
      mostInFlight: this.#limits.mostInFlight,
      mostPerText,
    };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "/", method } = request;
    if (method === "GET") {
      const known = { "/health": {}, "/stats": this.stats(), "/v1/models": models }[url];
      return send(response, known === undefined ? 404 : 200, known ?? notFound(url));
    }
    const text = await textOf(request);
    const [path = "/"] = url.split("?");
    if (sleeping.has(path) || waking.has(path)) {
      this.#isAsleep = sleeping.has(path);
      this.#wakeUps += this.#isAsleep ? 0 : 1;
      return void response.writeHead(200).end();
    }
    if (this.#isAsleep) return send(response, 400, problem("asleep"));
    const answer = answers[url];
    if (answer === undefined) return send(response, 404, notFound(url));
    this.#stats.requests += 1;
    const tokens = countTokens(text);
    const place = await this.#enter(tokens);
    if (typeof place === "string") {
      count(this.#stats.violations, place);
      return send(response, 429, problem(`${place} limit reached`), comeBack);
    }
    // A client that has gone away takes no place any more; nor does who is about to be answered.
    const leave = (): void => place.left(tokens);
    const gone = (): void => {
      leave();
      this.#letIn(tokens);
    };
    if (response.destroyed) gone();
    else response.once("close", gone);
    const respond = await this.#judge(text, tokens, answer);
    if (respond === undefined || response.destroyed) return;
    if (!respond.staysIn) {
      response.off("close", gone);
      leave();
    }
    if (this.#options.announces === true) this.#announce(response);
    respond.send(response);
  }

  /** Beyond the limit is who finds all places taken by clients that are there, and not by such that have gone before and of whom it was not heard yet. */
  async #enter(tokens: number): Promise<Place | Violation> {
    const place = this.#limits.enter(tokens, performance.now());
    if (place !== "concurrency") return place;
    const { promise, resolve } = Promise.withResolvers<Place | Violation>();
    this.#atTheDoor.push(resolve);
    for (let turns = 0; turns < turnsToGo; turns++) await turn();
    const at = this.#atTheDoor.indexOf(resolve);
    if (at !== -1) {
      this.#atTheDoor.splice(at, 1);
      resolve("concurrency");
    }
    return promise;
  }

  /** In the place of one who has gone; a place of one who was answered is for nobody who came before. */
  #letIn(tokens: number): void {
    const [first] = this.#atTheDoor;
    if (first === undefined) return;
    this.#atTheDoor.shift();
    first(this.#limits.enter(tokens, performance.now()));
  }

  #announce(response: ServerResponse): void {
    const { remaining, resetMs } = this.#limits.requestsAt(performance.now());
    response.setHeader("x-ratelimit-remaining-requests", String(remaining));
    response.setHeader("x-ratelimit-reset-requests", `${Math.ceil(resetMs)}ms`);
  }

  /** What to do about it, when it is time; undefined: nothing at all. */
  async #judge(text: string, tokens: number, answer: Answer): Promise<Respond | undefined> {
    const request = (parsed(text) ?? {}) as ChatRequest;
    const question = questionOf(request);
    if (question === undefined) return sending(400, problem("the question is no JSON"));
    const key = JSON.stringify(question);
    const { seed = 1, timesPerText = 1 } = this.#options;
    const tries = this.#tries.get(key) ?? 0;
    this.#tries.set(key, tries + 1);
    const fault =
      tries < timesPerText ? chosen(this.#options.faults, chanceOf(seed, key, "fault")) : undefined;
    if (fault !== undefined) count(this.#stats.failed, fault);
    if (fault === "hang") return undefined;
    await delay(latencyOf(this.#options.latency, chanceOf(seed, key, `latency ${tries}`)));
    if (this.#isBrownOut()) {
      count(this.#stats.failed, "brown-out");
      return sending(503, problem("overloaded"), comeBack);
    }
    if (fault !== undefined) return failing[fault];
    const { rewardScore } = await scoreSample(
      { dataSource: "judged", response: question.solution, groundTruth: question.groundTruth },
      this.#score,
    );
    this.#stats.answered += 1;
    this.#answers.set(key, (this.#answers.get(key) ?? 0) + 1);
    const speech = chosen(this.#options.speech, chanceOf(seed, key, `speech ${tries}`));
    return sending(200, answer(rewardScore, tokens, { ...request, speech }));
  }

  #isBrownOut(): boolean {
    const { brownOuts } = this.#options;
    if (brownOuts === undefined) return false;
    return (performance.now() - this.#startedMs) % brownOuts.everyMs < brownOuts.forMs;
  }
}

/** By shares of all. */
function chosen<Kind extends string>(
  shares: Readonly<Partial<Record<Kind, number>>> | undefined,
  chance: number,
): Kind | undefined {
  let sum = 0;
  for (const [kind, share] of Object.entries(shares ?? {}) as [Kind, number][]) {
    sum += share;
    if (chance < sum) return kind;
  }
  return undefined;
}

/** Of vLLM, of SGLang. */
const sleeping: ReadonlySet<string> = new Set(["/sleep", "/release_memory_occupation"]);
const waking: ReadonlySet<string> = new Set(["/wake_up", "/resume_memory_occupation"]);

type Answer = (score: number, tokens: number, request: ChatRequest) => unknown;

const answers: Readonly<Record<string, Answer>> = {
  "/v1/chat/completions": (score, tokens, request) => ({
    id: "chatcmpl-judge",
    object: "chat.completion",
    created: 0,
    model: "judge",
    choices: Array.from({ length: request.n ?? 1 }, (_, index) => ({
      index,
      ...spoken(messageOf(score, request), request, index),
    })),
    ...(request.return_token_ids === true ? { prompt_token_ids: [7, 8, 9] } : {}),
    usage: { prompt_tokens: tokens - 10, completion_tokens: 10, total_tokens: tokens },
  }),
  "/classify": (score) => ({
    id: "classify-judge",
    object: "list",
    model: "judge",
    data: [{ index: 0, label: "LABEL_0", probs: [score], num_classes: 1 }],
  }),
  "/v1/embeddings": (score, tokens) => ({
    object: "list",
    model: "judge",
    data: [{ object: "embedding", index: 0, embedding: [0, score] }],
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }),
};

const models = { object: "list", data: [{ id: "judge", object: "model" }] };

interface Respond {
  readonly send: (response: ServerResponse) => void;
  /** It is not over with that. */
  readonly staysIn: boolean;
}

function sending(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Respond {
  return { staysIn: false, send: (response) => send(response, status, body, headers) };
}

const failing: Readonly<Record<Exclude<Fault, "hang">, Respond>> = {
  refuse: sending(429, problem("too many requests"), comeBack),
  error: sending(500, problem("internal error")),
  overload: sending(503, problem("overloaded"), comeBack),
  empty: sending(200, {}),
  slow: { staysIn: true, send: begin },
  cut: { staysIn: false, send: cut },
  "cut-body": {
    staysIn: false,
    send: (response) => {
      begin(response, () => cut(response));
    },
  },
  malformed: {
    staysIn: false,
    send: (response) => {
      begin(response, () => response.end());
    },
  },
};

function cut(response: ServerResponse): void {
  response.socket?.destroy();
}

/** The beginning of an answer. */
function begin(response: ServerResponse, then?: () => void): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.write('{"choices": [', then);
}

function latencyOf(latency: Latency | undefined, chance: number): number {
  if (latency === undefined) return 0;
  if ("uniform" in latency) {
    const [min, max] = latency.uniform;
    return min + chance * (max - min);
  }
  const { meanMs, sigma } = latency.lognormal;
  // Two numbers out of one: Box and Muller want them independent.
  const second = (chance * 65_536) % 1;
  const normal = Math.sqrt(-2 * Math.log(Math.max(1e-12, chance))) * Math.cos(2 * Math.PI * second);
  return meanMs * Math.exp(sigma * normal - (sigma * sigma) / 2);
}

/** Both end in the same number, without dollar signs and thousands' commas. */
function lastNumbers({ solutionStr, groundTruth }: Parameters<ComputeScore>[0]): number {
  const last = (text: string): string | undefined =>
    text
      .replaceAll(/(?<=\d),(?=\d)/g, "")
      .match(/-?\d+(\.\d+)?/g)
      ?.at(-1);
  return Number(last(solutionStr)) === Number(last(String(groundTruth))) ? 1 : 0;
}

/** Chat: the last message that has one, as a judge may be asked again in the same conversation; the others: `input`. JSON, alone or within a text. */
function questionOf(request: ChatRequest): Question | undefined {
  const asked = request.messages?.map(({ content }) => content) ?? [request.input];
  return asked.toReversed().flatMap(questionIn)[0];
}

function questionIn(text: unknown): Question[] {
  const [json = ""] = /\{.*\}/s.exec(String(text)) ?? [];
  const question = parsed(json) as Partial<Question> | undefined;
  return typeof question?.solution === "string" ? [question as Question] : [];
}

interface ChatRequest {
  readonly messages?: readonly { readonly content: string }[];
  readonly n?: number;
  readonly max_tokens?: number;
  readonly seed?: number;
  readonly logprobs?: boolean;
  /** vLLM's. */
  readonly return_token_ids?: boolean;
  readonly input?: string;
  readonly tools?: readonly { readonly function: ChoiceTool }[];
  /** How it is to be answered: of the server's own. */
  readonly speech?: Speech | undefined;
}

/** A function that is to be called with one of several choices, the first for a right answer, the last for a wrong one. */
interface ChoiceTool {
  readonly name: string;
  readonly parameters?: {
    readonly properties?: { readonly choice?: { readonly enum?: readonly string[] } };
  };
}

/** Undefined: it is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function messageOf(score: number, { tools, speech }: ChatRequest): Message {
  const tool = tools?.[0]?.function;
  const json = JSON.stringify({ score });
  const words = `I would say that it is ${score > 0.5 ? "right" : "wrong"}.`;
  if (speech === "prose") return { role: "assistant", content: words };
  if (tool === undefined) {
    const content = speech === "fenced" ? `${words}\n\n\`\`\`json\n${json}\n\`\`\`` : json;
    return { role: "assistant", content };
  }
  const choices = tool.parameters?.properties?.choice?.enum ?? [];
  const choice = score > 0.5 ? choices.at(0) : choices.at(-1);
  const call = { name: tool.name, arguments: JSON.stringify({ choice }) };
  const toolCalls = [{ id: "call-judge", type: "function", function: call }];
  return { role: "assistant", content: null, tool_calls: toolCalls };
}

/** A message in tokens of three characters, cut where it gets too long, with log-probs that depend on the seed where they are asked for. */
function spoken(message: Message, request: ChatRequest, index: number): object {
  const { max_tokens: most = Infinity, seed = 0, logprobs, return_token_ids: ids } = request;
  const tokens = message.content?.match(/.{1,3}/gsu) ?? [];
  const said = tokens.slice(0, most);
  const logProbOf = (token: string, at: number): number =>
    Math.log(chanceOf(seed, `${index}/${at}/${token}`, "token"));
  const content = said.map((token, at) => ({
    token,
    logprob: logProbOf(token, at),
    bytes: [...Buffer.from(token)],
    top_logprobs: [],
  }));
  return {
    message: message.content === null ? message : { ...message, content: said.join("") },
    finish_reason: said.length < tokens.length ? "length" : "stop",
    ...(logprobs === true ? { logprobs: { content } } : {}),
    ...(ids === true ? { token_ids: said.map((token) => Buffer.from(token).readUInt8(0)) } : {}),
  };
}

interface Message {
  readonly role: "assistant";
  readonly content: string | null;
  readonly tool_calls?: readonly unknown[];
}

function countTokens(text: string): number {
  return Math.ceil(text.length / 4) + 10;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function problem(message: string): unknown {
  return { error: { message, type: "judge_error" } };
}

function notFound(url: string): unknown {
  return problem(`there is no ${url}`);
}

function count<Key extends string>(counts: Partial<Record<Key, number>>, key: Key): void {
  const known: number = counts[key] ?? 0;
  counts[key] = known + 1;
}

if (import.meta.main) {
  const judge = await JudgeServer.start(JSON.parse(process.argv[2] ?? "{}") as JudgeOptions);
  process.once("disconnect", () => process.exit());
  const { address } = judge;
  if (process.send === undefined) console.log(JSON.stringify({ address }));
  else process.send({ address });
}
