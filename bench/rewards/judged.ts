/**
 * What a question to a judge over HTTP costs who asks: by fetch alone, and as a sample of the
 * reward loop, without policies and with those that most judges need. The judge is a process of its
 * own, whose CPU does not count.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import pLimit from "p-limit";
import { askedByFetch } from "../subjects/asking.ts";
import type { RewardsPlan } from "./measures.ts";
import type { NamedRate } from "./tables.ts";

/** Questions under way. */
export const askedAtOnce = 128;
const workers = 2;
const reward = new URL("../subjects/asking.ts", import.meta.url).href;

type Ask = (questions: readonly string[]) => Promise<readonly number[]>;

export async function askedJudge(
  plan: Pick<RewardsPlan, "judged" | "rounds">,
): Promise<NamedRate[]> {
  const judge = spawn(process.execPath, [new URL("judge-endpoint.ts", import.meta.url).pathname], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    const [port] = (await once(judge.stdout, "data")) as [Buffer];
    const judgeUrl = `http://127.0.0.1:${Number(port)}/v1`;
    const limit = pLimit(askedAtOnce);
    const byHand: Ask = (questions) =>
      Promise.all(questions.map((one) => limit(() => askedByFetch(judgeUrl, one))));
    const policies = {
      limits: { concurrency: askedAtOnce, endpoint: judgeUrl },
      retry: true,
      totalTimeoutMs: 60_000,
    };
    return [
      await rateOf("fetch, by hand", byHand, plan),
      await rateOfLoop("reward loop, chatComplete", judgeUrl, {}, plan),
      await rateOfLoop("the same with limits, retries and a total time", judgeUrl, policies, plan),
    ];
  } finally {
    judge.stdin.end();
  }
}

async function rateOfLoop(
  name: string,
  judgeUrl: string,
  options: RewardLoopOptions,
  plan: Pick<RewardsPlan, "judged" | "rounds">,
): Promise<NamedRate> {
  await using loop = await RewardLoopManager.create({
    workers,
    executors: 1,
    concurrency: askedAtOnce / workers,
    reward: { path: reward, name: "asked", rewardKwargs: { judgeUrl } },
    ...options,
  });
  const ask: Ask = async (questions) => {
    const outcomes = await Promise.all(
      questions.map((response) =>
        loop.computeScore({ dataSource: "bench", response, groundTruth: "" }),
      ),
    );
    return outcomes.map((one) => (one.valid ? one.rewardScore : Number.NaN));
  };
  return await rateOf(name, ask, plan);
}

/** Returns the best of a few rounds after the warm-ups. */
async function rateOf(
  name: string,
  ask: Ask,
  { judged, rounds }: Pick<RewardsPlan, "judged" | "rounds">,
): Promise<NamedRate> {
  const questions = Array.from({ length: judged }, (_, index) => String(index));
  const warmUps = 2;
  let best: NamedRate = { name, perSecond: 0, cpuUs: Infinity };
  for (let round = 0; round < rounds + warmUps; round++) {
    const before = process.cpuUsage();
    const startMs = performance.now();
    const scores = await ask(questions);
    const perSecond = (judged * 1000) / (performance.now() - startMs);
    const { user, system } = process.cpuUsage(before);
    const cpuUs = (user + system) / judged;
    if (!scores.every((score) => score === 0.7)) throw new Error(`${name}: a score is wrong`);
    if (round >= warmUps && cpuUs < best.cpuUs) best = { name, perSecond, cpuUs };
  }
  return best;
}
