/**
 * `rayling score` with functions that score the answers to one prompt together, and with what is
 * done to them together.
 */

import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { readRewardLog } from "@rayling/reward-loop";
import type { RewardRecord } from "@rayling/reward-loop";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { groupSizesOf } from "../src/cli/inputs/sample-groups.ts";
import { openSolutions, type SolutionSample } from "../src/cli/inputs/solutions.ts";
import { fileOf, folder, inProcess, rayling, start } from "./command.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

let directory = "";
let out = "";
beforeEach(async () => {
  directory = await folder();
  out = join(directory, "rewards.jsonl");
});

async function moduleOf(text: string): Promise<string> {
  const path = join(directory, "reward.mjs");
  await writeFile(path, text);
  return path;
}

/** How many of its group each is longer than; notes the groups that it got. */
const ranking = (): Promise<string> =>
  moduleOf(`import { appendFileSync } from "node:fs";
    export function computeScores(group) {
      const texts = group.map(({ solutionStr }) => solutionStr);
      appendFileSync(${JSON.stringify(join(directory, "calls"))}, texts.join(" ") + "\\n");
      return texts.map((text) => texts.filter((other) => other.length < text.length).length);
    }`);

async function called(): Promise<string[]> {
  const text = await readFile(join(directory, "calls"), "utf8").catch(() => "");
  return text.split("\n").filter(Boolean);
}

async function linesOf(): Promise<RewardRecord[]> {
  return Array.fromAsync(readRewardLog(out));
}

/** By index, what counts. */
async function scores(): Promise<(number | null)[]> {
  const counted: (number | null)[] = [];
  for (const { index, score } of await linesOf()) counted[index] = score;
  return counted;
}

const score = async (...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await inProcess("score", ...args, "--workers", "1");
  expect({ code, stderr: stderr.includes("rayling:") ? stderr : "" }).toEqual({
    code: 0,
    stderr: "",
  });
  return stdout;
};

describe("answers are a group", () => {
  const row = (prompt: string, response: string, more: object = {}): object => ({
    prompt,
    response,
    ground_truth: "",
    ...more,
  });

  test.each<[string, object[], string | undefined, string[]]>([
    [
      "by their prompt, wherever they stand",
      [row("a", "x"), row("b", "y"), row("a", "xx"), row("b", "yyy"), row("a", "xxx")],
      undefined,
      ["x xx xxx", "y yyy"],
    ],
    [
      "by uid before the prompt",
      [row("a", "x", { uid: 1 }), row("a", "y", { uid: 2 }), row("b", "xx", { uid: 1 })],
      undefined,
      ["x xx", "y"],
    ],
    [
      "by the key that is named",
      [
        row("a", "x", { uid: "1", of: { task: "t" } }),
        row("b", "yy", { uid: "2", of: { task: "t" } }),
      ],
      "of.task",
      ["x yy"],
    ],
    [
      "by their row, where nothing else says it",
      [
        { responses: ["x", "xx"], ground_truth: "" },
        { response: "y", ground_truth: "" },
        { response: "z", ground_truth: "" },
      ],
      undefined,
      ["x xx", "y", "z"],
    ],
    [
      "by their question",
      [
        { question: "q", ground_truth: "", a: { solution: "x" }, b: { solution: "xx" } },
        { question: "p", ground_truth: "", a: { solution: "y" } },
      ],
      undefined,
      ["x xx", "y"],
    ],
  ])("%s", async (_, rows, groupKey, groups) => {
    const options = { keys: {}, allowNan: false, groupKey };
    const { signal } = new AbortController();
    const { read } = await openSolutions(await fileOf(rows), signal, options);
    const samples = await Array.fromAsync<SolutionSample>(read());
    // One without a name is alone.
    const nameOf = ({ context, place }: SolutionSample): string =>
      context?.group ?? `alone at ${place.index}`;
    const byGroup = Object.groupBy(samples, nameOf);
    const texts = Object.values(byGroup).map((own = []) =>
      own.map(({ response }) => (typeof response === "string" ? response : "")).join(" "),
    );
    expect(texts.toSorted()).toEqual(groups);
  });

  test("and are scored together, wherever they stand", async () => {
    const rows = [
      row("", "x", { of: { task: "a" } }),
      row("", "y", { of: { task: "b" } }),
      row("", "xx", { of: { task: "a" } }),
      row("", "yyy", { of: { task: "b" } }),
      row("", "xxx", { of: { task: "a" } }),
    ];
    const flags = ["--reward", await ranking(), "--group-key", "of.task", "--out", out];
    await score(await fileOf(rows), ...flags);
    expect((await called()).toSorted()).toEqual(["x xx xxx", "y yyy"]);
    expect(await scores()).toEqual([0, 0, 1, 1, 2]);
  });

  test("of a key that is there and says something", async () => {
    const reward = await ranking();
    const flags = ["--reward", reward, "--group-key", "task", "--out", out];
    for (const [value, message] of [
      [undefined, 'there is no group: "task" is missing'],
      [["t"], '"task" is neither a text nor a number'],
    ] as const) {
      const input = await fileOf([row("a", "x", { task: value })]);
      const { code, stderr } = await inProcess("score", input, ...flags);
      expect(stderr).toContain(message);
      expect(code).toBe(2);
    }
  });

  test("that stand no further apart than memory is kept for", async () => {
    async function* samples(apart: number): AsyncGenerator<SolutionSample> {
      const place = { index: 0, questionIndex: 0, solutionKey: "response" };
      const rest = { dataSource: "t", response: "", groundTruth: "", label: undefined, place };
      for (let at = 0; at < 2 * apart; at++) {
        yield { ...rest, extraInfo: { question: "" }, context: { group: `${at % apart}` } };
      }
    }
    const sizeOf = await groupSizesOf("in.jsonl", samples(65_536));
    for await (const sample of samples(1)) expect(sizeOf(sample)).toBe(2);
    await expect(groupSizesOf("in.jsonl", samples(65_537))).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("in.jsonl: answers to one prompt stand too far apart"),
    });
  });
});

test("one at a time nobody scores what looks at groups: --latency and --baseline refuse it", async () => {
  const input = await fileOf([{ prompt: "a", responses: ["x", "xx"], ground_truth: "" }]);
  const reward = await ranking();
  const flags = ["--reward", reward, "--latency", "1", "--baseline", "1", "--out", out];
  const { code, stdout, stderr } = await inProcess("score", input, ...flags);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(`--latency and --baseline: --reward ${reward} looks at all answers`);
  expect(stderr).toContain("Give --latency 0 --baseline 0.");
  expect(await called()).toEqual([]);
  expect(existsSync(out)).toBe(false);
});

test("behind --latency a function gets the context of its call, too", async () => {
  const input = await fileOf([{ prompt: "a", response: "x", ground_truth: "", uid: "u7" }]);
  const reward = await moduleOf(`export const computeScore = ({ group, lane, signal, ...given }) =>
    ({ score: 1, group, lane, canStop: signal instanceof AbortSignal, judge: given.judge ?? null });`);
  await score(input, "--reward", reward, "--latency", "1", "--out", out);
  const extra = { group: "u7", lane: "training", canStop: true, judge: null };
  expect(await linesOf()).toMatchObject([{ score: 1, extra }]);
});

test("--fallback groupMean is the mean of a prompt's answers, and --resume scores the others again", async () => {
  const up = join(directory, "up");
  const reward = await moduleOf(`import { existsSync } from "node:fs";
    export async function computeScore({ solutionStr }) {
      if (solutionStr === "down" && !existsSync(${JSON.stringify(up)})) throw new Error("down");
      return Number(solutionStr === "down" ? 7 : solutionStr);
    }`);
  const rows = [
    { prompt: "a", responses: ["1", "down", "4"], ground_truth: "" },
    { prompt: "b", response: "down", ground_truth: "" },
  ];
  const flags = [await fileOf(rows), "--reward", reward, "--fallback", "groupMean", "--out", out];
  flags.push("--fail-above", "0.5");
  expect(await score(...flags)).toMatch(/^mean score +2\.5000, mean of 3 valid of 4$/m);
  expect(await scores()).toEqual([1, 2.5, 4, null]);
  const filled = (await linesOf()).filter(({ scoredAs }) => scoredAs === null);
  expect(filled).toMatchObject([{ index: 1, extra: { fallback: true, error: "SCORE_THREW" } }]);
  await writeFile(up, "");
  expect(await score(...flags, "--resume")).toMatch(/^samples +4, 2 of before$/m);
  expect(await scores()).toEqual([1, 7, 4, 7]);
});

test("rayling serve knows no group to take a mean of", async () => {
  const reward = await moduleOf("export const computeScore = () => 1;");
  const serve = await inProcess("serve", "--reward", reward, "--fallback", "groupMean");
  expect(serve).toMatchObject({ code: 2, stdout: "" });
  expect(serve.stderr).toContain("--fallback groupMean is for rayling score");
});

describe("postProcessScores", () => {
  /** 10 less each time that a score goes through it. */
  const centred = `export class Centred {
      async computeScore({ solutionStr }) {
        if (solutionStr === "none") return null;
        return { score: Number(solutionStr), usage: { prompt_tokens: 10, completion_tokens: 0 } };
      }
      postProcessScores(scores) {
        return scores.map((score) => (score === null ? null : score - 10 * scores.length));
      }
    }`;
  const rows = [
    { prompt: "a", responses: ["1", "2"], ground_truth: "" },
    { prompt: "b", responses: ["3", "none"], ground_truth: "" },
    { prompt: "c", response: "5", ground_truth: "" },
  ];
  const closing: (() => Promise<void>)[] = [];
  /** One run, and what it said; each case goes on with a copy of its log. */
  let [input, reward, log, said] = ["", "", "", ""];
  const flags = (): string[] => [
    input,
    "--reward",
    `${reward}:Centred`,
    "--out",
    out,
    "--price",
    "100000,0",
  ];
  beforeAll(async () => {
    const shared = await folder((remove) => void closing.push(remove));
    [input, reward, out] = ["in.jsonl", "reward.mjs", "out.jsonl"].map((name) =>
      join(shared, name),
    ) as [string, string, string];
    await writeFile(input, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    await writeFile(reward, centred);
    said = await score(...flags());
    log = await readFile(out, "utf8");
  });
  beforeEach(() => writeFile(out, log));
  afterAll(async () => {
    for (const close of closing) await close();
  });

  test("makes the scores that count, each once, and costs nothing more", async () => {
    expect(said).toMatch(/^spent: 4\.0000$/m);
    expect(await scores()).toEqual([-19, -18, -17, null, -5]);
    const report = async (): Promise<unknown> =>
      JSON.parse((await inProcess("rewards", "report", out, "--format", "json")).stdout);
    expect(await report()).toMatchObject({
      samples: 5,
      valid: 4,
      superseded: 0,
      cost: 4,
      tokens: { input: 40 },
      meanScore: -14.75,
    });
    // Nothing is called for a sample whose function gave a score, whatever its group made of it.
    const resumed = await score(...flags(), "--resume");
    expect(resumed).toMatch(/^samples +5, 4 of before$/m);
    expect(resumed).toMatch(/^spent: 4\.0000, 4\.0000 of it before$/m);
    expect(await scores()).toEqual([-19, -18, -17, null, -5]);
    expect(await report()).toMatchObject({ samples: 5, valid: 4, cost: 4 });
  });

  test("is done once to what is replayed, and not at all without the module", async () => {
    const before = out;
    for (const functions of [["--reward", `${reward}:Centred`], []]) {
      out = join(directory, `replayed${functions.length}.jsonl`);
      await score(input, ...functions, "--replay", before, "--out", out);
      expect(await scores()).toEqual([-19, -18, -17, null, -5]);
    }
  });

  test("that was not done when the process was killed is done by --resume", async () => {
    const lines = log.split("\n");
    const own = lines.filter((line) => line !== "" && !line.includes('"scoredAs"'));
    expect(own).toHaveLength(5);
    await writeFile(out, `${own.join("\n")}\n`);
    expect(await scores()).toEqual([1, 2, 3, null, 5]);
    expect(await score(...flags(), "--resume")).toMatch(/^samples +5, 4 of before$/m);
    expect(await scores()).toEqual([-19, -18, -17, null, -5]);
  });
});

describe("kill -9", () => {
  const groups = 12;
  const answers = 4;
  const atOnce = 3;

  /** Answers so many calls, and holds all others until it is opened. */
  async function startGate(): Promise<{
    url: string;
    asked: string[];
    held: () => number;
    answers: (more: number) => void;
  }> {
    const asked: string[] = [];
    const waiting = new Set<() => void>();
    let left = 0;
    const answer = (): void => {
      for (const respond of waiting) {
        if (left === 0) return;
        left -= 1;
        waiting.delete(respond);
        respond();
      }
    };
    const server = createServer(async (request, response) => {
      asked.push((await request.toArray()).join(""));
      const respond = (): void => void response.end("ok");
      waiting.add(respond);
      response.on("close", () => waiting.delete(respond));
      answer();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    const more = (count: number): void => {
      left += count;
      answer();
    };
    return { url: `http://127.0.0.1:${port}`, asked, held: () => waiting.size, answers: more };
  }

  test.runIf(
    inFull(
      "score-killed.test.ts kills a run, and packages/reward-loop/test/stream-groups.test.ts scores all of a group of which a line is missing",
    ),
  )(
    "costs the groups that were under way, and one of which a line is missing is scored as a whole",
    async () => {
      const gate = await startGate();
      const reward = await moduleOf(`export async function computeScores(group) {
      const texts = group.map(({ solutionStr }) => solutionStr);
      await fetch(group[0].url, { method: "POST", body: texts.join(" ") });
      return texts.map((_, rank) => rank);
    }`);
      const input = await fileOf(
        Array.from({ length: groups * answers }, (_, at) => ({
          prompt: `prompt ${at % groups}`,
          response: `${at % groups}.${Math.floor(at / groups)}`,
          ground_truth: "",
        })),
      );
      const flags = ["score", input, "--reward", reward, "--reward-kwarg", `url=${gate.url}`];
      flags.push("--out", out, "--workers", "1", "--resume", "--concurrency", `${atOnce}`);
      const { child, ended } = start(...flags);
      gate.answers(5);
      await expect.poll(gate.held, { timeout: 60_000, interval: 5 }).toBe(atOnce);
      const text = (): Promise<string> => readFile(out, "utf8").catch(() => "");
      const lines = async (): Promise<number> => (await text()).split("\n").length - 1;
      await expect.poll(lines, { timeout: 60_000, interval: 5 }).toBe(5 * answers);
      child.kill("SIGKILL");
      await ended;
      await expect.poll(gate.held).toBe(0);
      // As if it had been killed in the last line.
      await truncate(out, Buffer.byteLength(await text()) - 20);
      gate.answers(Number.POSITIVE_INFINITY);
      const { code, stdout } = await rayling(...flags);
      expect(code).toBe(0);
      expect(stdout).toMatch(
        new RegExp(`^samples +${groups * answers}, ${5 * answers - 1} of before$`, "m"),
      );
      expect(new Set(gate.asked).size).toBe(groups);
      expect(gate.asked).toHaveLength(groups + atOnce + 1);
      const ranks = Array.from({ length: groups * answers }, (_, at) => Math.floor(at / groups));
      expect(await scores()).toEqual(ranks);
    },
  );
});
