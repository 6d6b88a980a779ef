import { expect, test } from "vitest";
import { Metrics, type MetricInfo } from "../src/telemetry/metrics.ts";
import { type TaskEvent, TaskEvents } from "../src/telemetry/task-events.ts";
import { toTrace } from "../src/runtime/observe/timeline.ts";

const settle = (sequence: number): TaskEvent => ({
  kind: "settle",
  owner: "o",
  sequence,
  name: "n",
  atMs: sequence,
  error: undefined,
});

test("a ring keeps the newest events in their order, and says when it is no longer empty", () => {
  const events = new TaskEvents(3);
  let dirty = 0;
  events.whenDirty(() => (dirty += 1));
  for (let sequence = 0; sequence < 5; sequence++) events.add(settle(sequence));
  expect(events.take().map((event) => (event as { sequence: number }).sequence)).toEqual([2, 3, 4]);
  expect(events.all()).toEqual([]);
  events.add(settle(9));
  expect(dirty).toBe(2);
});

const counter: MetricInfo = {
  kind: "counter",
  name: "c",
  description: "c",
  tagKeys: ["a", "b"],
  boundaries: [],
};

test("what was taken is not given again; parts add up where they are gathered", () => {
  const [one, total] = [new Metrics(), new Metrics()];
  one.note(counter, ["1", "2"], 3);
  one.note(counter, ["1", "2"], 4);
  one.note(counter, ["12", ""], 1);
  for (const part of one.take()) total.add(part);
  expect(one.take()).toEqual([]);
  one.note(counter, ["1", "2"], 1);
  for (const part of one.take()) total.add(part);
  const [part] = total.all();
  expect(part?.series.map(({ tags, value }) => [tags, value])).toEqual([
    [["1", "2"], 8],
    [["12", ""], 1],
  ]);
});

test("a further description of a metric is compared once, and not at each record", () => {
  let looks = 0;
  const again: MetricInfo = {
    ...counter,
    get tagKeys() {
      looks += 1;
      return counter.tagKeys;
    },
  };
  const metrics = new Metrics();
  metrics.define(counter);
  metrics.note(again, ["1", "2"], 1);
  const first = looks;
  for (let count = 0; count < 10; count++) metrics.note(again, ["1", "2"], 1);
  expect(looks).toBe(first);
  metrics.note(counter, ["1", "2"], 1);
  expect(metrics.all()[0]?.series).toMatchObject([{ value: 12 }]);
  expect(() => metrics.note({ ...counter, tagKeys: ["a"] }, ["1"], 1)).toThrow('metric "c" exists');
});

test("executions that overlap go to lanes of their own, and calls made in one stay with it", () => {
  const execute = (sequence: number, startMs: number, endMs: number): TaskEvent => ({
    kind: "execute",
    owner: "driver-1",
    sequence,
    name: "A.run",
    startMs,
    decodedMs: startMs,
    endMs,
    ok: true,
  });
  const submit = (sequence: number, startMs: number, parent: number): TaskEvent => ({
    kind: "submit",
    owner: "host-1",
    sequence,
    name: "B.run",
    startMs,
    endMs: startMs + 1,
    actorId: undefined,
    parentId: `driver-1:${parent}`,
  });
  const trace = toTrace([
    {
      runtimeId: "host-1",
      nodeId: "node-1",
      events: [
        execute(1, 0, 100),
        execute(2, 10, 120),
        submit(1, 20, 2),
        submit(2, 30, 1),
        execute(3, 130, 140),
      ],
    },
  ]);
  const lanes = trace
    .filter(({ name }) => name === "thread_name")
    .map(({ args }) => args?.["name"]);
  expect(lanes).toEqual(["host-1", "host-1 (2)"]);
  const tidOf = (cat: string, ts: number): number | undefined =>
    trace.find((event) => event.cat === cat && event.ts === ts)?.tid;
  expect(tidOf("submit_task", 20_000)).toBe(tidOf("task::A.run", 10_000));
  expect(tidOf("submit_task", 30_000)).toBe(tidOf("task::A.run", 0));
  expect(tidOf("task::A.run", 130_000)).toBe(tidOf("task::A.run", 0));
});
