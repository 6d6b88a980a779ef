/** What each client makes of each way in which an endpoint may misbehave: the class of the failure, the attempts of two that are made, the tokens that are paid for. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeCertificate } from "@rayling/cluster";
import * as ray from "@rayling/core";
import { readRewardLog, RewardLoopManager } from "@rayling/reward-loop";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { behaviours, startOddEndpoint } from "../servers/odd-endpoint.ts";
import type { OddEndpoint } from "../servers/odd-endpoint.ts";
import { sized } from "../fixtures/suite.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const clients = ["byChat", "byFetch", "byOpenAI", "byAiSdk"] as const;
type Client = (typeof clients)[number];

/** Where clients differ. */
type Exceptions = { readonly others: Row } & Readonly<Partial<Record<Client, Row>>>;

/** The class, or the score; how often it is asked; what is paid. */
type Row = readonly [result: string | number, attempts: number, tokens: number];

const wanted: Readonly<Record<string, Row | Exceptions>> = {
  right: [1, 1, 10],
  "right, as text": [1, 1, 10],
  "right, compressed": [1, 1, 10],
  "right, in chunks": [1, 1, 10],
  "right, in parts": [10, 1, 10],
  "400": ["data", 1, 0],
  "401": ["data", 1, 0],
  "403": ["data", 1, 0],
  "404": ["data", 1, 0],
  "408": ["timeout", 2, 0],
  "409": ["infrastructure", 2, 0],
  "422": ["data", 1, 0],
  "425": ["data", 1, 0],
  "429": ["rate-limit", 2, 0],
  "500": ["infrastructure", 2, 0],
  "502, HTML": ["infrastructure", 2, 0],
  "503": ["infrastructure", 2, 0],
  "504": ["timeout", 2, 0],
  "529": ["infrastructure", 2, 0],
  "204": ["infrastructure", 2, 0],
  // These two read nothing of an error but its status.
  "500 that used": {
    others: ["infrastructure", 2, 20],
    byFetch: ["infrastructure", 2, 0],
    byOpenAI: ["infrastructure", 2, 0],
  },
  "429, 20ms": ["rate-limit", 2, 0],
  "429, an hour": ["rate-limit", 1, 0],
  "429, twice": ["rate-limit", 1, 0],
  "503, a date": ["rate-limit", 2, 0],
  "403, 0": ["data", 1, 0],
  "409, 0": ["infrastructure", 2, 0],
  "425, 0": ["data", 1, 0],
  "400, try again": ["infrastructure", 2, 0],
  "500, do not": ["data", 1, 0],
  "no JSON": ["infrastructure", 2, 0],
  "half of the JSON": ["infrastructure", 2, 0],
  "no body": ["infrastructure", 2, 0],
  null: ["infrastructure", 2, 0],
  "{}": ["infrastructure", 2, 0],
  "no choices": ["infrastructure", 2, 20],
  "no content": ["infrastructure", 2, 20],
  "an empty text": ["infrastructure", 2, 20],
  blanks: ["infrastructure", 2, 20],
  // A function that reads the text itself knows that it is empty.
  "a call of tools": { others: ["infrastructure", 2, 20], byFetch: [0, 1, 10] },
  "no tokens left": ["data", 1, 10],
  "no tokens left, empty": ["data", 1, 10],
  filtered: ["data", 1, 10],
  // What the AI SDK makes a text of is no number.
  refused: { others: ["data", 1, 10], byAiSdk: ["user-code", 1, 10] },
  // Where the AI SDK finds no answer it does not say what else there was.
  "error 429 inside": { others: ["rate-limit", 2, 20], byAiSdk: ["infrastructure", 2, 20] },
  "error inside": ["infrastructure", 2, 20],
  "error of a choice": ["infrastructure", 2, 20],
  // Others do not look for what was used in a stream.
  "streamed, unasked": { others: ["infrastructure", 2, 0], byChat: ["infrastructure", 2, 20] },
  // The AI SDK takes no such answer.
  "usage as text": { others: [1, 1, 10], byAiSdk: ["infrastructure", 2, 20] },
  "usage in Anthropic's words": [1, 1, 10],
  "usage as a total": [1, 1, 10],
  "cut at once": ["infrastructure", 2, 0],
  "reset at once": ["infrastructure", 2, 0],
  "cut in the head": ["infrastructure", 2, 0],
  "cut in the body": ["infrastructure", 2, 0],
  "ended in the body": ["infrastructure", 2, 0],
  "cut between chunks": ["infrastructure", 2, 0],
  "a chunk of no size": ["infrastructure", 2, 0],
  "no HTTP": ["infrastructure", 2, 0],
  "a head without end": ["infrastructure", 2, 0],
  "a length that is none": ["infrastructure", 2, 0],
  "not compressed": ["infrastructure", 2, 0],
  "half of it compressed": ["infrastructure", 2, 0],
  "a redirect to itself": ["user-code", 1, 0],
  "a redirect to nowhere": ["user-code", 1, 0],
  "a certificate that nobody knows": ["user-code", 1, 0],
  "nobody listens": ["infrastructure", 2, 0],
  "TLS where there is none": ["infrastructure", 2, 0],
};

const path = fileURLToPath(new URL("../fixtures/asking.ts", import.meta.url));
let endpoint: OddEndpoint;
let unknown: OddEndpoint;
let folder = "";
let origins: Readonly<Record<string, string>> = {};

beforeAll(async () => {
  await ray.init({ isolation: "shared", prewarm: 0 });
  folder = await mkdtemp(join(tmpdir(), "rayling-odd-"));
  await makeCertificate({ authority: folder, hosts: ["127.0.0.1"] });
  const [key, cert] = await Promise.all(
    ["key.pem", "cert.pem"].map((name) => readFile(join(folder, name), "utf8")),
  );
  endpoint = await startOddEndpoint();
  unknown = await startOddEndpoint({ key: key as string, cert: cert as string });
  const plain = `127.0.0.1:${endpoint.port}`;
  origins = {
    "": `http://${plain}`,
    "a certificate that nobody knows": `https://127.0.0.1:${unknown.port}`,
    "TLS where there is none": `https://${plain}`,
    "nobody listens": `http://127.0.0.1:${await closedPort()}`,
  };
});

afterAll(async () => {
  await ray.shutdown();
  await endpoint[Symbol.asyncDispose]();
  await unknown[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** That somebody had, and left. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("there are at least 40 of them", () => {
  expect(Object.keys(wanted).length).toBeGreaterThan(40);
});

/** Ours, and the one of others that differs most. */
const inGate: readonly Client[] = ["byChat", "byAiSdk"];

test.each(sized({ gate: inGate, full: clients }))("%s", async (client) => {
  const names = [...Object.keys(behaviours), ...Object.keys(origins).filter(Boolean)];
  // A test that is repeated counts anew.
  const record = join(await mkdtemp(join(folder, client)), "rewards.jsonl");
  endpoint.seen.clear();
  {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: { path, name: client, rewardKwargs: { origins } },
      retry: { attempts: 2, baseMs: 0, budget: Infinity },
      spend: { prices: { perMillionInputTokens: 1e6, perMillionOutputTokens: 1e6 } },
      record,
    });
    await Promise.all(
      names.map((response) => loop.computeScore({ dataSource: "odd", response, groundTruth: "" })),
    );
  }
  const found: Record<string, Row> = {};
  for await (const line of readRewardLog(record)) {
    const name = names[line.index] as string;
    found[name] = [line.score ?? line.errorClass ?? "", line.attempts, line.cost ?? 0];
    const served = endpoint.seen.get(`${client}/${name}`);
    // As counted by the server; a redirect is another request.
    if (served !== undefined && !name.startsWith("a redirect to itself")) {
      expect([name, served.requests]).toEqual([name, line.attempts]);
      expect(served.tokens).toBeGreaterThanOrEqual(line.cost ?? 0);
    }
  }
  const rows = Object.entries(wanted).map(([name, row]) => [
    name,
    "others" in row ? (row[client] ?? row.others) : row,
  ]);
  expect(found).toEqual(Object.fromEntries(rows));
});
