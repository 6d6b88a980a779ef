/**
 * Question: what does HTTP cost a score? Requests of single samples and of batches to `rayling
 * serve`, with a reward log and without, beside the reward loop without HTTP, and the same function
 * behind FastAPI where a Python has it.
 *
 * Who asks is this process, so it has a part of the machine, too, the same for all servers. All
 * take turns within each round. CPU is that of the server's process (of the loop: of this one),
 * with all its threads: it moves least when something else runs. Every score is compared with what
 * it must be.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { Pool } from "undici";
import { field } from "./measure/printed.ts";
import type { Progress, Report, Table } from "./measure/report.ts";
import { ScoreServer } from "./serve/server.ts";

export interface ServePlan {
  readonly rounds: number;
  /** Counts for each round and server. */
  readonly requests: number;
  /** Single requests under way at a time. */
  readonly inFlight: number;
  readonly batches: number;
  readonly batchSize: number;
  readonly batchesInFlight: number;
  /** An interpreter that has fastapi and uvicorn: it takes part. */
  readonly python?: string;
}

interface Run {
  readonly server: string;
  readonly kind: "single" | "batch";
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Load {
  readonly kind: Run["kind"];
  readonly path: string;
  readonly bodies: readonly string[];
  readonly inFlight: number;
  readonly samplesEach: number;
  readonly check: (body: unknown, index: number) => void;
}

interface Sample {
  readonly id: string;
  readonly response: string;
  readonly ground_truth: string;
  readonly data_source: string;
}

const plain = "rayling serve";
const recording = "rayling serve --record, with keys";
const alone = "the reward loop, without HTTP";

export async function measureServe(plan: ServePlan, say: Progress): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-serve-"));
  await using servers = new AsyncDisposableStack();
  servers.defer(() => rm(folder, { recursive: true }));
  say("starting servers");
  const quiet = ["--no-request-log"];
  const log = ["--record", join(folder, "rewards.jsonl")];
  const all = [
    servers.use(await ScoreServer.rayling(plain, quiet)),
    servers.use(await ScoreServer.rayling(recording, [...quiet, ...log])),
  ];
  if (plan.python !== undefined) all.push(servers.use(await ScoreServer.fastApi(plan.python)));
  await ray.init();
  servers.defer(() => ray.shutdown());
  const loop = servers.use(
    await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      concurrency: 64,
      timeoutMs: 30_000,
      reward: new URL("serve/grade.ts", import.meta.url).href,
    }),
  );
  const runs: Run[] = [];
  // The first round is for what is compiled as it runs.
  for (let round = 0; round <= plan.rounds; round++) {
    for (const load of [singles(plan, round), batches(plan, round)]) {
      for (const server of rotated(all, round)) {
        say(`${server.name}, ${load.kind}, round ${round}`);
        const run = await measured(server, load);
        if (round > 0) runs.push(run);
      }
    }
    say(`${alone}, round ${round}`);
    const run = await withoutHttp(loop, plan);
    if (round > 0) runs.push(run);
  }
  const names = all.map(({ name }) => name);
  const perLoop = medianOf(runs, plain, "batch", "cpuUs") / medianOf(runs, alone, "batch", "cpuUs");
  const title = `${plan.inFlight} requests under way, one sample each`;
  const batchTitle = `${plan.batchesInFlight} requests under way, ${plan.batchSize} samples each`;
  return {
    tables: [
      tableOf(title, names, runs, "single"),
      tableOf(batchTitle, [alone, ...names], runs, "batch"),
    ],
    measured: {
      "serve: requests/s": medianOf(runs, plain, "single", "perSecond"),
      "serve: samples/s in batches": medianOf(runs, plain, "batch", "perSecond"),
      "serve: CPU x loop": perLoop,
    },
    details: { plan, runs },
  };
}

function singles({ requests, inFlight }: ServePlan, round: number): Load {
  return {
    kind: "single",
    path: "/score",
    bodies: Array.from({ length: requests }, (_, index) => JSON.stringify(sample(index, round))),
    inFlight,
    samplesEach: 1,
    check: (body, index) => mustBe(field(body, "score"), index),
  };
}

function batches({ batches: count, batchSize, batchesInFlight }: ServePlan, round: number): Load {
  const bodies = Array.from({ length: count }, (_, batch) => {
    const samples = Array.from({ length: batchSize }, (__, index) =>
      sample(batch * batchSize + index, round, "b"),
    );
    return JSON.stringify({ samples });
  });
  return {
    kind: "batch",
    path: "/score/batch",
    bodies,
    inFlight: batchesInFlight,
    samplesEach: batchSize,
    check: (body, batch) => {
      const outcomes = field(body, "outcomes");
      const all: readonly unknown[] = Array.isArray(outcomes) ? outcomes : [];
      if (all.length !== batchSize) throw new Error(`${all.length} outcomes`);
      for (const [index, one] of all.entries()) {
        mustBe(field(one, "score"), batch * batchSize + index);
      }
    },
  };
}

/** The batches of the servers, as many of them at a time. */
async function withoutHttp(
  loop: RewardLoopManager,
  { batches: count, batchSize, batchesInFlight }: ServePlan,
): Promise<Run> {
  const times: number[] = [];
  let next = 0;
  const ask = async (): Promise<void> => {
    for (let batch = next++; batch < count; batch = next++) {
      const startedAt = performance.now();
      const outcomes = await Promise.all(
        Array.from({ length: batchSize }, (_, index) => {
          const { response, ground_truth: groundTruth, data_source: dataSource } = sample(index, 0);
          return loop.computeScore({ response, groundTruth, dataSource });
        }),
      );
      times.push(performance.now() - startedAt);
      for (const [index, outcome] of outcomes.entries()) {
        mustBe(outcome.valid ? outcome.rewardScore : undefined, index);
      }
    }
  };
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: batchesInFlight }, ask));
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  const samples = count * batchSize;
  const cpuMs = (user + system) / 1000;
  return runOf({ server: alone, kind: "batch" }, { samples, ms, cpuMs, times });
}

/** Half of them are right. FastAPI's model leaves the id out. */
function sample(index: number, round: number, kind = "s"): Sample {
  return {
    id: `${kind}-${round}-${index}`,
    response: `${"The sum is taken step by step. ".repeat(8)}#### ${index % 2 === 0 ? index : "none"}`,
    ground_truth: String(index),
    data_source: "openai/gsm8k",
  };
}

function mustBe(score: unknown, index: number): void {
  const right = index % 2 === 0 ? 1 : 0;
  if (score !== right) throw new Error(`sample ${index} has ${String(score)} and not ${right}`);
}

async function measured(server: ScoreServer, load: Load): Promise<Run> {
  const { path, inFlight, samplesEach, check } = load;
  const bodies = server.name === recording ? load.bodies : load.bodies.map(withoutIds);
  const pool = new Pool(server.url, { connections: inFlight, pipelining: 1 });
  const headers = { "content-type": "application/json" };
  const times: number[] = [];
  let next = 0;
  const ask = async (): Promise<void> => {
    for (let index = next++; index < bodies.length; index = next++) {
      const startedAt = performance.now();
      const answer = await pool.request({
        path,
        method: "POST",
        headers,
        body: bodies[index] ?? "",
      });
      const text = await answer.body.text();
      times.push(performance.now() - startedAt);
      if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${text}`);
      check(JSON.parse(text), index);
    }
  };
  const cpuBefore = await server.cpuMs();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: inFlight }, ask));
  const ms = performance.now() - startedAt;
  const cpuMs = (await server.cpuMs()) - cpuBefore;
  await pool.close();
  const samples = bodies.length * samplesEach;
  return runOf({ server: server.name, kind: load.kind }, { samples, ms, cpuMs, times });
}

interface Taken {
  readonly samples: number;
  readonly ms: number;
  readonly cpuMs: number;
  /** How long each request took, in ms. */
  readonly times: readonly number[];
}

function runOf(of: Pick<Run, "server" | "kind">, { samples, ms, cpuMs, times }: Taken): Run {
  const sorted = times.toSorted((a, b) => a - b);
  return {
    ...of,
    perSecond: (1000 * samples) / ms,
    cpuUs: (1000 * cpuMs) / samples,
    p50Ms: sorted[Math.floor(sorted.length / 2)] ?? 0,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  };
}

/** Without a log nobody needs them, and FastAPI has no such thing. */
function withoutIds(body: string): string {
  return body.replaceAll(/"id":"[^"]*",/g, "");
}

function rotated<One>(list: readonly One[], by: number): One[] {
  const at = by % list.length;
  return [...list.slice(at), ...list.slice(0, at)];
}

function tableOf(
  title: string,
  names: readonly string[],
  runs: readonly Run[],
  kind: Run["kind"],
): Table {
  return {
    title,
    rows: [
      ["", "samples/s", "rounds", "p50 ms", "p99 ms", "CPU us/sample"],
      ...names.map((name) => {
        const rates = runs
          .filter((run) => run.server === name && run.kind === kind)
          .map(({ perSecond }) => perSecond);
        const of = (key: "perSecond" | "p50Ms" | "p99Ms" | "cpuUs"): number =>
          medianOf(runs, name, kind, key);
        return [
          name,
          grouped(of("perSecond")),
          `${grouped(Math.min(...rates))} - ${grouped(Math.max(...rates))}`,
          of("p50Ms").toFixed(1),
          of("p99Ms").toFixed(1),
          of("cpuUs").toFixed(0),
        ];
      }),
    ],
  };
}

function medianOf(
  runs: readonly Run[],
  server: string,
  kind: Run["kind"],
  key: "perSecond" | "p50Ms" | "p99Ms" | "cpuUs",
): number {
  const values = runs
    .filter((run) => run.server === server && run.kind === kind)
    .map((run) => run[key])
    .toSorted((a, b) => a - b);
  return values[Math.floor(values.length / 2)] ?? Number.NaN;
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
