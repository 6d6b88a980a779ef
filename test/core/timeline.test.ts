import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Chain, double, Gate, Ordered } from "../fixtures/inside.ts";

describe.each(["thread", "process"] as const)("timeline of a real run (%s)", (isolation) => {
  let trace: readonly ray.TraceEvent[];
  let written: string;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rayling-trace-"));
    await ray.init({ numCpus: 2, prewarm: 0, taskEvents: true, isolation });
    const ordered = Ordered.remote();
    const chain = Chain.remote();
    await ray.get([1, 2, 3].map((value) => ordered.quick.remote(value)));
    // Overlapping calls of an async actor, which call another one.
    await ray.get([1, 2, 3, 4].map((value) => chain.call.remote(ordered, value)));
    await ray.get([1, 2, 3, 4].map((value) => double.remote(value)));
    await ray.get(Gate.remote().fail.remote("in the trace")).catch(() => undefined);
    const path = join(folder, "trace.json");
    // A host that is late is asked again.
    do trace = await ray.timeline(path);
    while (trace.filter(({ ph }) => ph === "f").length < 16);
    written = await readFile(path, "utf8");
  });
  afterAll(async () => {
    await ray.shutdown();
    await rm(folder, { recursive: true });
  });

  const slices = (): (ray.TraceEvent & { ts: number; dur: number })[] =>
    trace.filter((event) => event.ph === "X") as never;

  test("is written as it is returned", () => {
    expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(trace)));
  });

  // The events of a long session are longer than a string can be.
  test("is written event by event", () => {
    expect(written.split("\n")).toHaveLength(trace.length + 3);
  });

  test("has every field that its kind of event needs", () => {
    expect(trace.length).toBeGreaterThan(40);
    for (const event of trace) {
      expect(["X", "M", "s", "f"]).toContain(event.ph);
      expect(event.name).not.toBe("");
      expect([Number.isInteger(event.pid), Number.isInteger(event.tid)]).toEqual([true, true]);
      if (event.ph === "M") {
        expect(["process_name", "thread_name"]).toContain(event.name);
        expect(event.args?.["name"]).toMatch(/^(node|driver|host)-/);
        continue;
      }
      expect(event.ts).toBeGreaterThanOrEqual(0);
      expect(event.cat).not.toBe("");
      if (event.ph === "X") expect(event.dur).toBeGreaterThanOrEqual(0);
      else expect(Number.isInteger(event.id)).toBe(true);
      if (event.ph === "f") expect(event.bp).toBe("e");
    }
  });

  test("names a track for each host and for the driver", () => {
    const named = new Set(
      trace.filter((event) => event.name === "thread_name").map(({ pid, tid }) => `${pid} ${tid}`),
    );
    for (const { pid, tid } of slices()) expect(named).toContain(`${pid} ${tid}`);
    const tracks = trace.filter((event) => event.name === "thread_name");
    expect(tracks.some(({ args }) => String(args?.["name"]).startsWith("driver-"))).toBe(true);
    expect(
      tracks.filter(({ args }) => String(args?.["name"]).startsWith("host-")).length,
    ).toBeGreaterThan(2);
  });

  test("shows submit, arguments, execution and the waits, by Ray's categories", () => {
    const categories = new Set(slices().map(({ cat }) => cat));
    for (const category of [
      "submit_task",
      "task::OrderedClass.quick",
      "task::Chain.call",
      "task::double",
      "task::GateClass.fail",
      "task:deserialize_arguments",
      "task:execute",
      "ray.get",
    ]) {
      expect(categories).toContain(category);
    }
    expect(slices().filter(({ cat }) => cat === "task::OrderedClass.quick")).toHaveLength(7);
    expect(slices().find(({ cat }) => cat === "task::GateClass.fail")?.args?.["ok"]).toBe(false);
  });

  test("nests: two slices of one track are apart, or one lies within the other", () => {
    const tracks = Map.groupBy(slices(), ({ pid, tid }) => `${pid} ${tid}`);
    const tolerance = 0.0015;
    for (const track of tracks.values()) {
      for (const [index, one] of track.entries()) {
        for (const other of track.slice(index + 1)) {
          const [first, second] = one.ts <= other.ts ? [one, other] : [other, one];
          const apart = second.ts >= first.ts + first.dur - tolerance;
          const within = second.ts + second.dur <= first.ts + first.dur + tolerance;
          const same = Math.abs(first.ts - second.ts) < tolerance;
          expect(apart || within || same, `${one.name} and ${other.name}`).toBe(true);
        }
      }
    }
  });

  test("has arrows from the submit of a call to its execution, which are later and pair up", () => {
    const starts = trace.filter((event) => event.ph === "s");
    const ends = new Map(trace.filter((event) => event.ph === "f").map((one) => [one.id, one]));
    // 3 + 4 + 4 calls of actors, 4 tasks, 1 failure.
    expect(starts.length).toBe(16);
    expect(new Set(starts.map(({ id }) => id)).size).toBe(starts.length);
    expect(ends.size).toBe(starts.length);
    const isAt = (event: ray.TraceEvent, cat: RegExp): boolean =>
      slices().some(
        (slice) =>
          slice.pid === event.pid &&
          slice.tid === event.tid &&
          slice.ts === event.ts &&
          cat.test(slice.cat ?? ""),
      );
    for (const start of starts) {
      const end = ends.get(start.id) as ray.TraceEvent;
      expect(end.ts).toBeGreaterThanOrEqual(start.ts ?? Infinity);
      expect(isAt(start, /^submit_task$/)).toBe(true);
      expect(isAt(end, /^task::/)).toBe(true);
    }
  });
});

test("without taskEvents there is nothing in it", async () => {
  await ray.init({ numCpus: 1, prewarm: 0 });
  await ray.get(double.remote(1));
  expect(await ray.timeline()).toEqual([]);
  await expect(ray.timeline("/nonexistent/trace.json")).rejects.toMatchObject({
    option: "path",
    message: expect.stringContaining('"/nonexistent/trace.json" cannot be written') as string,
    cause: { code: "ENOENT" },
  });
  await ray.shutdown();
});
