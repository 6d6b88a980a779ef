import { afterAll, beforeAll, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { asksForWorkers, idle } from "./fixtures/idle-task.ts";
import { currentCaller } from "./fixtures/runtime.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

/** What the session's directory says of its lines. */
const waiting = async (): Promise<string | undefined> =>
  /State="waiting"[^\n]* (\d+)/.exec((await currentCaller()?.directory.metricsText()) ?? "")?.[1];

const Nowhere = idle.options({ resources: { nowhere: 1 } });

test("tasks that are cancelled while they wait for a worker leave no request behind", async () => {
  const tasks = Array.from({ length: 10 }, () => Nowhere.remote());
  expect(await waiting()).toBe("4");
  for (const task of tasks.slice(2)) ray.cancel(task);
  for (const task of tasks.slice(0, 1)) ray.cancel(task);
  // One is left.
  ray.cancel(tasks[1] as ray.ObjectRef);
  for (const task of tasks) await expect(ray.get(task)).rejects.toThrow(ray.TaskCancelledError);
  expect(await waiting()).toBe("0");
});

test("the same for tasks of an actor, and what it asks for later is asked for again", async () => {
  const asking = asksForWorkers.remote();
  await ray.get(asking.cancelled.remote());
  expect(await waiting()).toBe("0");
  const task = Nowhere.remote();
  expect(await waiting()).toBe("1");
  ray.cancel(task);
  expect(await ray.get(asking.runs.remote())).toBe("ran");
});
