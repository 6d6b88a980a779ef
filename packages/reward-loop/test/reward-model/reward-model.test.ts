/** Reward models behind a router: scores as verl asks for them, sleep and waking, servers that are started and ended. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { DataProto, tensor } from "@rayling/data-proto";
import { RewardLoopManager, RewardModelManager } from "@rayling/reward-loop";
import type { SampleOutcome } from "@rayling/reward-loop";
import { chatComplete, postJson, postRequest } from "@rayling/reward-loop/client";
import { readRewardConfig, rewardLoopOptionsOf } from "@rayling/reward-loop/config";
import { isRunning, killGroup } from "@rayling/reward-manager-registry/values";
import { createTokenizer } from "@rayling/reward-loop/tokenizer";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { startJudge } from "../judge.ts";
import { ServerProcess } from "../../src/reward-model/server-process.ts";
import { fixture } from "../loop.ts";
import { sized } from "../../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const model = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));
const serverProcess = new URL("../../src/reward-model/server-process.ts", import.meta.url).href;
const serverProgram = fileURLToPath(
  new URL("../../../../test/servers/judge-server.ts", import.meta.url),
);

/** Answers to "how many?": right, wrong, right. */
async function batch(): Promise<DataProto> {
  const tokenizer = await createTokenizer({ path: model });
  const ids = ["18<|eos|>", "19<|eos|>", "18<|eos|>"].map((text) => tokenizer.encode(text));
  const width = 5;
  const padded = ids.map((row) => [...row, ...Array<number>(width - row.length).fill(0)]);
  return DataProto.fromDict({
    tensors: {
      responses: tensor(padded, "int32"),
      attention_mask: tensor(
        ids.map((row) => Array.from({ length: width }, (_, at) => (at < row.length ? 1 : 0))),
        "int32",
      ),
    },
    nonTensors: {
      raw_prompt: ids.map(() => [{ role: "user", content: "18" }]),
      data_source: ids.map(() => "test"),
      reward_model: ids.map(() => ({ ground_truth: "unused" })),
    },
  });
}

describe.each(["vllm", "sglang"] as const)("%s", (engine) => {
  test("scores by itself, awake for that and no longer", async () => {
    await using one = await startJudge();
    await using other = await startJudge();
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      rewardModel: {
        engine,
        model: "judge",
        servers: [one.address, other.address],
        tokenizer: model,
        policyTokenizer: model,
        sleeps: true,
      },
    });
    expect(
      await Promise.all([one, other].map(async (judge) => (await judge.stats()).isAsleep)),
    ).toEqual([true, true]);
    const rewards = await loop.computeRmScore(await batch());
    expect(rewards.nonTensorBatch["rewardError"]).toEqual([null, null, null]);
    expect(Array.from(rewards.batch?.["rmScores"]?.data ?? [])).toEqual([
      0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
    ]);
    expect(await one.stats()).toMatchObject({ isAsleep: true, wakeUps: 1 });
    expect((await one.stats()).answered + (await other.stats()).answered).toBe(3);
  });
});

test("what it is known to have said is of that prompt and that model, and of no other", async () => {
  await using judge = await startJudge();
  const folder = await mkdtemp(join(tmpdir(), "rayling-cache-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const asked = async (name: string, ...prompts: string[]): Promise<SampleOutcome[]> => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      cache: join(folder, "scores.sqlite"),
      rewardModel: { engine: "vllm", model: name, servers: [judge.address], tokenizer: model },
    });
    const samples = prompts.map((content) => ({
      dataSource: "test",
      response: "18",
      rawPrompt: [{ role: "user", content }],
      groundTruth: "unused",
    }));
    return await Promise.all(samples.map((sample) => loop.computeScore(sample)));
  };
  const said = (outcomes: readonly SampleOutcome[]): unknown[] =>
    outcomes.map((one) => [one.valid ? one.rewardScore : one.error, one.attempts]);
  expect(said(await asked("judge", "18", "19", "18"))).toEqual([
    [1, 1],
    [0, 1],
    [1, 0],
  ]);
  expect(said(await asked("judge", "19"))).toEqual([[0, 0]]);
  expect(said(await asked("another", "19"))).toEqual([[0, 1]]);
});

test("it sleeps again when the work fails, and when waking does; the first failure is told", async () => {
  await using judge = await startJudge();
  await using gone = await startJudge();
  const servers = [judge.address, gone.address];
  await using manager = await RewardModelManager.create({ engine: "vllm", servers, sleeps: true });
  const failing = manager.awake(() => Promise.reject(new Error("no luck")));
  await expect(failing).rejects.toThrow("no luck");
  expect(await judge.stats()).toMatchObject({ isAsleep: true, wakeUps: 1 });
  await gone[Symbol.asyncDispose]();
  await expect(manager.awake(async () => "never")).rejects.toMatchObject({
    name: "EndpointError",
    url: expect.stringContaining(gone.address) as string,
  });
  expect(await judge.stats()).toMatchObject({ isAsleep: true, wakeUps: 2 });
});

test("it is awake for as long as anybody needs it", async () => {
  await using judge = await startJudge();
  const servers = [judge.address];
  await using manager = await RewardModelManager.create({ engine: "vllm", servers, sleeps: true });
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  const works = [manager.awake(() => first.promise), manager.awake(() => second.promise)];
  first.resolve("first");
  expect(await works[0]).toBe("first");
  expect(await judge.stats()).toMatchObject({ isAsleep: false, wakeUps: 1 });
  second.resolve("second");
  expect(await works[1]).toBe("second");
  expect(await judge.stats()).toMatchObject({ isAsleep: true, wakeUps: 1 });
  expect(await manager.awake(async () => (await judge.stats()).isAsleep)).toBe(false);
  expect(await judge.stats()).toMatchObject({ isAsleep: true, wakeUps: 2 });
});

test("a function of yours gets the router's address, and asks a generative model there", async () => {
  await using judge = await startJudge({ faults: { error: 0.3, "cut-body": 0.2 } });
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    retry: { attempts: 5, baseMs: 1, budget: Infinity },
    reward: fixture("by-router.ts"),
    rewardModel: { engine: "vllm", model: "judge", servers: [judge.address] },
  });
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      loop.computeScore({
        dataSource: "test",
        response: String(index),
        groundTruth: String(index - (index % 2)),
      }),
    ),
  );
  expect(outcomes.map((one) => (one.valid ? one.rewardScore : one.error))).toEqual(
    outcomes.map((_, index) => 1 - (index % 2)),
  );
  expect(outcomes.some(({ attempts }) => attempts > 1)).toBe(true);
  await expect(
    chatComplete({
      baseUrl: judge.address,
      model: "m",
      messages: [{ role: "user", content: "?" }],
    }),
  ).rejects.toMatchObject({ code: "HTTP_STATUS", status: 400 });
});

test("a function of yours gets the reward model's tokenizer, and so does one of a configuration", async () => {
  await using judge = await startJudge();
  const tokenizer = await createTokenizer({ path: model });
  const extra = {
    chat: tokenizer.applyChatTemplate([{ role: "user", content: "18" }]),
    again: "18",
  };
  const reward = `${fixture("by-router.ts")}:byTokenizer`;
  const rewardModel = { engine: "vllm", model: "judge", servers: [judge.address] } as const;
  const sample = { dataSource: "test", response: "18", groundTruth: "" };
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward,
    rewardModel: { ...rewardModel, tokenizer: model },
  });
  expect(await loop.computeScore(sample)).toMatchObject({ valid: true, rewardExtraInfo: extra });
  await using without = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward,
    rewardModel,
  });
  expect(await without.computeScore(sample)).toMatchObject({ valid: false });
  const config = readRewardConfig({
    reward: {
      num_workers: 1,
      executors: 1,
      custom_reward_function: { path: fixture("by-router.ts"), name: "byTokenizer" },
      reward_model: {
        enable: true,
        enable_resource_pool: true,
        model_path: model,
        servers: [judge.address],
        rollout: { name: "vllm" },
      },
    },
  });
  expect(rewardLoopOptionsOf(config)).toMatchObject({
    reward: { path: fixture("by-router.ts"), name: "byTokenizer" },
    rewardModel: { engine: "vllm", servers: [judge.address], tokenizer: model },
  });
});

test("requests are sent again but for what is wrong with them", async () => {
  await using judge = await startJudge({
    timesPerText: 3,
    faults: { error: 0.25, overload: 0.25, malformed: 0.25, cut: 0.25 },
  });
  const url = `${judge.baseUrl}/chat/completions`;
  const bodyOf = (solution: string): unknown => ({
    messages: [{ role: "user", content: JSON.stringify({ solution, groundTruth: "1" }) }],
  });
  const answers = Array.from({ length: 10 }, (_, index) =>
    postRequest(url, bodyOf(String(index)), { secondMs: 1 }),
  );
  await expect(Promise.all(answers)).resolves.toHaveLength(10);
  expect((await judge.stats()).requests).toBe(40);
  await expect(postRequest(url, {}, { secondMs: 1 })).rejects.toMatchObject({ status: 400 });
  expect((await judge.stats()).requests).toBe(41);
  await expect(
    postRequest(url, bodyOf("new"), { secondMs: 1, maxRetries: 2 }),
  ).rejects.toMatchObject({ name: "EndpointError" });
  expect((await judge.stats()).requests).toBe(43);
});

test("a deadline of one's own holds, and not the five minutes of Node's fetch", async () => {
  // Which are a millisecond here; looked at every half a second or so.
  const own = getGlobalDispatcher();
  const hasty = new Agent({ headersTimeout: 1, bodyTimeout: 1 });
  setGlobalDispatcher(hasty);
  onTestFinished(async () => {
    setGlobalDispatcher(own);
    await hasty.close();
  });
  const waiting: ServerResponse[] = [];
  const server = createServer((_, response) => void waiting.push(response)).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const patient = postJson(url, {}, { timeoutMs: 100_000 });
  await expect.poll(() => waiting.length).toBe(1);
  // Who has none hears of it when it is over.
  await expect(postJson(url, {})).rejects.toMatchObject({ code: "UND_ERR_HEADERS_TIMEOUT" });
  waiting[0]?.write('{"score"');
  await expect(postJson(url, {})).rejects.toMatchObject({ code: "UND_ERR_HEADERS_TIMEOUT" });
  waiting[0]?.end(":1}");
  expect(await patient).toEqual({ score: 1 });
});

test("a server that wants to be left alone for a day is not waited for, nor asked again at once", async () => {
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    response.writeHead(429, { "retry-after": asked === 1 ? "86400" : "1e9" }).end("tomorrow");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await expect(postRequest(url, {})).rejects.toMatchObject({ status: 429 });
  await expect(postRequest(url, {}, { maxRetryAfterMs: 1e15 })).rejects.toMatchObject({
    status: 429,
  });
  expect(asked).toBe(2);
});

test("what cannot be is refused: an engine, no servers, no tokenizer, no prompt", async () => {
  const create = (rewardModel: object): Promise<RewardLoopManager> =>
    RewardLoopManager.create({ workers: 1, executors: 1, rewardModel } as never);
  await expect(create({ engine: "trtllm", model: "m", servers: ["x"] })).rejects.toThrow(
    "rewardModel.engine must be vllm or sglang; it is trtllm",
  );
  await expect(create({ engine: "vllm", model: "m" })).rejects.toThrow("rewardModel.servers");
  await expect(create({ engine: "vllm", model: "m", server: "x" })).rejects.toThrow(
    "rewardModel.server must be one of engine",
  );
  const wrong = { engine: "vllm", model: "m", tokenizer: model };
  for (const server of ["10.0.0.1:99999", "ftp://10.0.0.1"]) {
    await expect(create({ ...wrong, servers: [server] })).rejects.toThrow(
      `rewardModel.servers must be host:port of each; it is ${server}`,
    );
  }
  const launch = { command: "true", args: [], replicas: 0 };
  await expect(create({ ...wrong, launch })).rejects.toThrow(
    "rewardModel.launch.replicas must be a whole number of at least 1; it is 0",
  );
  await using judge = await startJudge();
  const servers = [judge.address];
  await expect(create({ engine: "vllm", model: "m", servers })).rejects.toThrow(
    "rewardModel.tokenizer must be the folder",
  );
  await using loop = await create({ engine: "vllm", model: "m", servers, tokenizer: model });
  const sample = { dataSource: "test", response: "18", groundTruth: "" };
  expect(await loop.computeScore(sample)).toMatchObject({
    valid: false,
    error: { code: "INVALID_SAMPLE", message: expect.stringContaining("rawPrompt") as string },
  });
});

describe("servers that are started", () => {
  const launch = {
    command: process.execPath,
    args: [serverProgram, '{"port": {port}}'],
    replicas: 2,
  };

  test("are ended with the manager", async () => {
    const manager = await RewardModelManager.create({ engine: "vllm", launch });
    const urls = (await manager.servers()).map(({ url }) => url);
    expect(urls).toHaveLength(2);
    const headers = { authorization: `Bearer ${manager.routerToken}` };
    const health = (url: string): Promise<number> =>
      fetch(`${url}/health`, { headers }).then(({ status }) => status);
    expect(await Promise.all(urls.map(health))).toEqual([200, 200]);
    expect(await health(`http://${manager.routerAddress}`)).toBe(200);
    await manager.close();
    for (const url of [...urls, `http://${manager.routerAddress}`]) {
      await expect(health(url)).rejects.toThrow("fetch failed");
    }
  });

  test("that do not come up are told with their last words, and none is left", async () => {
    const program = `if (process.argv[1] === "0") setInterval(() => {}, 1000); else { console.error("no GPU"); process.exit(3); }`;
    const failing = RewardModelManager.create({
      engine: "vllm",
      launch: {
        command: process.execPath,
        args: ["-e", program, "{index}"],
        replicas: 2,
        startTimeoutMs: 1000,
      },
    });
    await expect(failing).rejects.toMatchObject({
      name: "RewardModelStartError",
      message: expect.stringMatching(
        /was not well after 1000 ms|ended with 3.*\nno GPU/s,
      ) as string,
    });
    const missing = RewardModelManager.create({
      engine: "vllm",
      launch: { command: "/no/such/server", args: [] },
    });
    await expect(missing).rejects.toThrow(/did not start: it ended with 127/);
  });

  test("that end before they are well are asked no more, and keep no process", async () => {
    const program = `
      import { ServerProcess } from ${JSON.stringify(serverProcess)};
      let asked = 0;
      const { fetch: own } = globalThis;
      globalThis.fetch = (...args) => {
        asked += 1;
        return own(...args);
      };
      const launch = { command: "sh", args: ["-c", "exit 3"], startTimeoutMs: 60_000 };
      const { message } = await ServerProcess.start(launch, 0, "/health").catch((error) => error);
      const before = asked;
      process.on("exit", () => console.log(message, asked - before));
    `;
    const args = ["--input-type=module", "-e", program];
    const driver = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(createInterface({ input: driver.stdout }), "line")) as [string];
    expect(line).toMatch(/it ended with 3.* 0$/);
  });

  const taken: readonly [string, number, string][] = [
    ["once get another one", 1, "is there"],
    // Five processes, one after the other.
    ["again and again are told", 9, "address already in use"],
  ];
  test.each(sized({ gate: taken.slice(0, 1), full: taken }))(
    "whose ports are taken %s",
    async (_, times, wanted) => {
      const folder = await mkdtemp(join(tmpdir(), "rayling-ports-"));
      onTestFinished(() => rm(folder, { recursive: true }));
      // Who comes at first finds that its port is somebody's.
      const program = `
      const { readdirSync, writeFileSync } = require("node:fs");
      const { createServer } = require("node:http");
      const { createServer: createSilent } = require("node:net");
      const [folder, port] = process.argv.slice(1);
      const tries = readdirSync(folder).length;
      writeFileSync(folder + "/" + process.pid, "");
      const listen = () => createServer((_, response) => response.end("well")).listen(Number(port), "127.0.0.1");
      if (tries < ${times}) createSilent().listen(Number(port), "127.0.0.1", listen);
      else listen();
    `;
      const started = RewardModelManager.create({
        engine: "vllm",
        launch: { command: process.execPath, args: ["-e", program, folder, "{port}"] },
      });
      const outcome = await started.then(
        async (manager) => {
          await manager.close();
          return "is there";
        },
        ({ name, message }: Error) => `${name}: ${message}`,
      );
      expect(outcome).toContain(wanted);
      expect(await readdir(folder)).toHaveLength(Math.min(times + 1, 5));
    },
  );

  test("end, late, where the system lets nobody end their group", async () => {
    // It hears nothing of SIGTERM.
    const program = `process.on("SIGTERM", () => {}); require("node:http").createServer((_, response) => response.end("well")).listen(Number(process.argv[1]), "127.0.0.1");`;
    const folder = await mkdtemp(join(tmpdir(), "rayling-late-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    // Whoever watches it sleeps until the test says so, and then kills it.
    const isOver = join(folder, "over");
    const sleep = `#!/bin/sh\nwhile [ ! -e ${isOver} ]; do /bin/sleep 0.05; done\n`;
    await writeFile(join(folder, "sleep"), sleep, { mode: 0o755 });
    const server = await ServerProcess.start(
      {
        command: process.execPath,
        args: ["-e", program, "{port}"],
        env: { PATH: `${folder}:${process.env["PATH"] ?? ""}` },
      },
      0,
      "/health",
    );
    // As macOS does for a group of processes that have ended.
    const kill = vi.spyOn(process, "kill").mockImplementation(() => {
      throw Object.assign(new Error("kill EPERM"), { code: "EPERM" });
    });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const stopped = server.stop();
      await vi.advanceTimersByTimeAsync(10_000);
      expect(kill).toHaveBeenCalledOnce();
      await writeFile(isOver, "");
      await stopped;
    } finally {
      vi.useRealTimers();
      kill.mockRestore();
    }
    await expect(fetch(`http://${server.address}/health`)).rejects.toThrow("fetch failed");
  });

  describe("leave no process of their group, not even one that they have started", () => {
    const program = `
      const { execFileSync, spawn } = require("node:child_process");
      spawn("sleep", ["600"], { stdio: "inherit" });
      const ps = execFileSync("ps", ["-o", "pgid=", "-p", String(process.pid)], { encoding: "utf8" });
      require("node:http")
        .createServer((_, response) => response.end(process.pid + " " + ps.trim()))
        .listen(Number(process.argv[1]), "127.0.0.1");
    `;
    const withWorker = { command: process.execPath, args: ["-e", program, "{port}"] };
    const idsOf = async (
      url: string,
    ): Promise<{ readonly pid: number; readonly group: number }> => {
      const text = await (await fetch(`${url}/health`)).text();
      const [pid = 0, group = 0] = text.split(" ").map(Number);
      onTestFinished(() => killGroup(group));
      return { pid, group };
    };
    const untilGone = (group: number): Promise<void> =>
      expect.poll(() => isRunning(-group), { timeout: 60_000 }).toBe(false);

    test("where their driver is killed", async () => {
      const args = [fixture("launching.ts"), JSON.stringify(withWorker)];
      const driver = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      const [line] = (await once(createInterface({ input: driver.stdout }), "line")) as [string];
      const [url = ""] = JSON.parse(line) as string[];
      const { group } = await idsOf(url);
      driver.kill("SIGKILL");
      await once(driver, "exit");
      await untilGone(group);
    });

    test("where they are killed themselves", async () => {
      const server = await ServerProcess.start(withWorker, 0, "/health");
      const { pid, group } = await idsOf(`http://${server.address}`);
      process.kill(pid, "SIGKILL");
      await untilGone(group);
      await server.stop();
    });
  });
});
