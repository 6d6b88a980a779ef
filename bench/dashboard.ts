/**
 * Question: how long does the live page take to open and filter 100,000 samples, and to show that
 * an actor has died? What it costs the calls of its session is in overhead.ts.
 *
 * Samples are asked for over HTTP as the page asks.
 */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get as httpGet } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as ray from "@rayling/core";
import { provideDashboard } from "@rayling/core/dashboard";
import { serveRewardLogs, serveSession } from "@rayling/dashboard";
import { readFlags, runCommand, takes, whole } from "./measure/command-line.ts";
import { percentile } from "./measure/interleave.ts";
import { describeMachine, machineLines } from "./measure/machine.ts";
import { terminalTables } from "./measure/report.ts";
import { Adder } from "./subjects/actors.ts";

const usage = `node bench/dashboard.ts [flags]

The live page: 100,000 samples, and a killed actor.

  --samples N      in the log; default 100000
  --json PATH      also write the figures there
  --help           print this`;

const kinds = {
  samples: takes.text,
  json: takes.text,
  help: takes.nothing,
} as const;

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args, kinds);
  if (flags.help === true) return console.log(usage);
  const samples = whole("--samples", flags.samples ?? "100000");
  provideDashboard(async () => serveSession);
  const lines = machineLines(describeMachine(["node bench/dashboard.ts", ...args]));
  const opened = await measureSamples(samples);
  const killed = await measureDeaths();
  if (flags.json !== undefined) {
    await writeFile(flags.json, JSON.stringify({ opened, killed }, undefined, 2));
  }
  const tables = [
    {
      title: `${samples} samples, ms`,
      rows: [heads, ...opened.map(rowOf)],
    },
    { title: "a killed actor is shown after, ms", rows: [heads, rowOf(killed)] },
  ];
  console.log(`${lines.join("\n")}\n\n${terminalTables(tables)}`);
}

interface Times {
  readonly name: string;
  readonly ms: readonly number[];
  /** What the median should stay below on 2 cores, in ms; undefined: there is no aim. */
  readonly aimMs?: number;
}

/** From 100,000 samples, and from `ray.kill`. */
const aimsMs = { open: 3000, find: 200, death: 2000 } as const;

const heads = ["", "median", "most", "aim", "reached"];

function rowOf({ name, ms, aimMs }: Times): string[] {
  const sorted = ms.toSorted((a, b) => a - b);
  const median = percentile(sorted, 0.5);
  const most = percentile(sorted, 1).toFixed(0);
  const shown = [name, median.toFixed(0), most];
  if (aimMs === undefined) return [...shown, "", ""];
  return [...shown, `< ${aimMs}`, median < aimMs ? "yes" : "no"];
}

/** Looks of each kind. */
const looks = 10;

const queries = {
  zeros: "show=zeros",
  invalid: "show=invalid",
  "scores over 0.5": "least=0.5",
  "by latency": "sort=latencyMs&order=descending",
  "two words": "text=natalia+clips",
  "a phrase": `text=${encodeURIComponent('"clips to of"')}`,
  "a text that is nowhere": "text=nowhere",
} as const;

async function measureSamples(samples: number): Promise<Times[]> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-bench-"));
  try {
    const path = join(folder, "rewards.jsonl");
    await writeSamples(path, samples);
    const times: Times[] = await measureOpening(path);
    const page = await serveRewardLogs([path], { port: 0 });
    const { ask } = await enter(page.url);
    await untilRead(ask);
    for (const [name, query] of Object.entries(queries)) {
      const ms: number[] = [];
      for (let look = 0; look < looks; look += 1) {
        // The answer to the same question is remembered.
        await ask("samples?show=disagreements");
        const askedAt = performance.now();
        await ask(`samples?${query}`);
        ms.push(performance.now() - askedAt);
      }
      times.push({ name, ms, aimMs: aimsMs.find });
    }
    await page.close();
    return times;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Opens anew each time. CPU is that of this process, which asks, too. */
async function measureOpening(path: string): Promise<Times[]> {
  const [first, all, cpu]: [number[], number[], number[]] = [[], [], []];
  for (let look = 0; look < looks; look += 1) {
    const startedAt = performance.now();
    const before = process.cpuUsage();
    const page = await serveRewardLogs([path], { port: 0 });
    const { ask } = await enter(page.url);
    await ask("samples?");
    first.push(performance.now() - startedAt);
    await untilRead(ask);
    all.push(performance.now() - startedAt);
    const { user, system } = process.cpuUsage(before);
    cpu.push((user + system) / 1000);
    await page.close();
  }
  return [
    { name: "open and see the first", ms: first, aimMs: aimsMs.open },
    { name: "open and have read all", ms: all, aimMs: aimsMs.open },
    { name: "CPU of that", ms: cpu },
  ];
}

/** The first answer may come before all is read. */
async function untilRead(ask: Entered["ask"]): Promise<void> {
  while (!(await ask("samples?count=0")).includes('"share":1,')) await sleep(readingMs);
}

/** How often the page looks meanwhile. */
const readingMs = 500;

const words =
  "Natalia sold clips to of her friends in April and then she half as many May How altogether".split(
    " ",
  );

async function writeSamples(path: string, samples: number): Promise<void> {
  const file = createWriteStream(path);
  let seed = 1;
  const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
  const text = (length: number): string =>
    Array.from({ length }, () => words[Math.floor(random() * words.length)]).join(" ");
  for (let index = 0; index < samples; index += 1) {
    const valid = random() > 0.03;
    const score = valid ? Math.round(random() * 4) / 4 : null;
    const message = "it took longer than 30000 ms";
    const line = JSON.stringify({
      ...lineOf(index),
      valid,
      score,
      error: valid ? null : { code: "SCORE_TIMEOUT", name: "TimeoutError", message },
      errorClass: valid ? null : "timeout",
      waitedMs: random() * 100,
      latencyMs: random() * 3000,
      cost: random() / 100,
      extra: { reason: text(20), acc: score },
      prompt: [{ role: "user", content: text(80) }],
      response: text(120),
      groundTruth: "72",
    });
    if (!file.write(`${line}\n`)) await once(file, "drain");
  }
  await once(file.end(), "close");
}

/** What is the same in every line. */
function lineOf(index: number): object {
  return {
    index,
    sample: `sample-${index}`,
    component: null,
    group: `group-${index >> 3}`,
    version: "v1",
    at: "2026-01-31T09:30:00.000Z",
    lane: "training",
    attempts: 1,
    cached: false,
    answeredBy: null,
    usage: { inputTokens: 500, outputTokens: 100, totalTokens: 600 },
  };
}

interface Entered {
  readonly ask: (view: string) => Promise<string>;
  /** Follows a view. Returns what ends it. */
  readonly follow: (view: string, onText: (text: string) => void) => Promise<() => void>;
}

async function enter(url: string): Promise<Entered> {
  const { headers } = await fetch(url, { redirect: "manual" });
  const { port, searchParams } = new URL(url);
  const base = `http://127.0.0.1:${port}${headers.get("location")}api/`;
  const authorization = `Bearer ${searchParams.get("token")}`;
  return {
    ask: async (view) => {
      const response = await fetch(`${base}${view}`, { headers: { authorization } });
      const text = await response.text();
      if (!response.ok) throw new Error(`${view}: ${text}`);
      return text;
    },
    follow: async (view, onText) => {
      const request = httpGet(`${base}${view}/events`, { headers: { authorization } });
      const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
      response.on("error", () => undefined);
      response.on("data", (chunk: Buffer) => onText(chunk.toString()));
      return () => void request.destroy();
    },
  };
}

async function measureDeaths(): Promise<Times> {
  const { dashboardUrl = "" } = await ray.init({ numCpus: 4, dashboard: { port: 0 } });
  const { follow } = await enter(dashboardUrl);
  let seen = Promise.withResolvers<void>();
  let wanted = "";
  const leave = await follow("actors", (text) => {
    if (wanted !== "" && text.includes(wanted)) seen.resolve();
  });
  const ms: number[] = [];
  for (let look = 0; look < looks; look += 1) {
    const actor = Adder.options({ name: `victim-${look}` }).remote();
    await ray.get(actor.add.remote(1, 2));
    seen = Promise.withResolvers<void>();
    // One dead actor more than before.
    wanted = `"name":"victim-${look}"`;
    await seen.promise;
    seen = Promise.withResolvers<void>();
    wanted = `"state":"DEAD","name":"victim-${look}"`;
    const killedAt = performance.now();
    await ray.kill(actor);
    await seen.promise;
    ms.push(performance.now() - killedAt);
  }
  leave();
  await ray.shutdown();
  return { name: "ray.kill to the event", ms, aimMs: aimsMs.death };
}

await runCommand("bench", main);
