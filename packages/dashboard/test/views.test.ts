/** What the page is given is what ray.state says, once and as it changes. */
import { get as httpGet } from "node:http";
import { once } from "node:events";
import * as ray from "@rayling/core";
import { expect, onTestFinished, test } from "vitest";
import { CallRate } from "../src/views/call-rate.ts";
import { Counter, Fragile } from "./fixtures/actors.ts";
import { type Served, servedSession } from "./fixtures/served.ts";

interface RowsAnswer {
  readonly total: number;
  readonly found: number;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

test("rows are those of ray.state, filtered by words and sorted by any column", async () => {
  const served = await servedSession({ numCpus: 4, taskEvents: true });
  const counters = ["b10", "b9", "a1"].map((name) => Counter.options({ name }).remote());
  await ray.get(counters.map((one) => one.increment.remote()));
  await expect(ray.get(Fragile.remote().leave.remote())).rejects.toThrow("code 7");
  const rows = (query: string): Promise<RowsAnswer> => served.view(`actors?${query}`);

  const listed = await ray.state.listActors({ detail: true });
  const all = await rows("");
  expect(all).toMatchObject({ total: 4, found: 4 });
  // A host that does not answer within the second of a look leaves its columns out.
  const shown = JSON.parse(JSON.stringify(listed)) as unknown;
  await expect.poll(async () => (await rows("")).rows).toEqual(shown);
  const dead = await rows("text=fragile+exited");
  expect(dead.rows).toMatchObject([
    { className: "Fragile", state: "DEAD", deathCause: expect.stringContaining("code 7") },
  ]);
  const names = async (query: string): Promise<unknown[]> =>
    (await rows(query)).rows.map(({ name }) => name);
  // A row without a value in the column comes last, and numbers within a text count.
  expect(await names("sort=name")).toEqual(["a1", "b9", "b10", ""]);
  expect(await names("sort=name&order=descending")).toEqual(["b10", "b9", "a1", ""]);
  expect(await names("text=counter&sort=executedCalls")).toHaveLength(3);

  const workers: RowsAnswer = await served.view("workers");
  expect(workers.total).toBe((await ray.state.listWorkers()).length);
  const tasks = (): Promise<RowsAnswer> => served.view("tasks?text=increment");
  const ended = await ray.state.listTasks({ filters: [["name", "=", "Counter.increment"]] });
  await expect.poll(async () => (await tasks()).found).toBe(ended.length);
});

test("an actor's page has its calls, its lines and its cause of death", async () => {
  const served = await servedSession({ numCpus: 2, taskEvents: true });
  const [quiet, loud] = [Counter.remote(), Counter.remote()];
  await ray.get([quiet.increment.remote(), loud.say.remote("a line of the loud one")]);
  const actors = await ray.state.listActors();
  const pages = (): Promise<never[]> =>
    Promise.all(actors.map(({ actorId }) => served.view(`actor?id=${actorId}`)));
  const answers = await pages();
  const lines = answers.map(({ logs }: { logs: { lines: { text: string }[] } }) =>
    logs.lines.map(({ text }) => text),
  );
  expect(lines).toEqual([[], ["a line of the loud one"]]);
  await expect.poll(pages).toMatchObject([
    { actor: { executedCalls: 1 }, calls: { rows: [{ name: "Counter.increment" }] } },
    { actor: { executedCalls: 1 }, calls: { rows: [{ name: "Counter.say" }] } },
  ]);
  expect((await served.ask(`${served.path}api/actor?id=nobody`)).status).toBe(404);
});

test("a view that is followed is sent again when it has changed, until the session ends", async () => {
  const served = await servedSession({ numCpus: 2 });
  const events = await followed(served, "actors");
  expect(await events.next()).toMatchObject({ total: 0 });
  const counter = Counter.remote();
  await ray.get(counter.increment.remote());
  let answer = await events.next();
  while (answer.rows[0]?.["executedCalls"] !== 1) answer = await events.next();
  expect(answer.rows).toMatchObject([{ className: "Counter", state: "ALIVE" }]);
  const ended = new Promise((resolve) => events.response.once("close", resolve));
  await ray.shutdown();
  await ended;
});

async function followed(
  { port, path, cookie }: Served,
  name: string,
): Promise<{
  readonly response: NodeJS.EventEmitter;
  next(): Promise<RowsAnswer>;
}> {
  const request = httpGet({ port, path: `${path}api/${name}/events`, headers: { cookie } });
  const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
  onTestFinished(() => void request.destroy());
  response.setEncoding("utf8");
  response.on("error", () => undefined);
  let text = "";
  return {
    response,
    next: async () => {
      while (!text.includes("\n\n")) text += String((await once(response, "data"))[0]);
      const end = text.indexOf("\n\n");
      const data = text.slice(0, end).replace(/^data: /, "");
      text = text.slice(end + 2);
      return JSON.parse(data) as RowsAnswer;
    },
  };
}

test("the rate of calls counts each life from its start", () => {
  let now = 0;
  const rate = new CallRate(() => now);
  const look = (ms: number, counts: Readonly<Record<string, number>>): number | undefined => {
    now += ms;
    return rate.add(
      Object.entries(counts).map(([actorId, executedCalls]) => ({ actorId, executedCalls })),
    );
  };
  expect(look(0, { a: 100 })).toBeUndefined();
  expect(look(1000, { a: 150, b: 10 })).toBe(60);
  // Too soon for a new one: two pages look at the same time.
  expect(look(10, { a: 151, b: 10 })).toBe(60);
  // Restarted: 5 calls since.
  expect(look(1990, { a: 5, b: 10 })).toBe(2.5);
  // Gone.
  expect(look(1000, { b: 10 })).toBe(0);
});
