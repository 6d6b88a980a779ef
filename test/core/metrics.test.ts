import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import * as ray from "@rayling/core";
import { Gate, Metered, meteredTask, Seer } from "../fixtures/inside.ts";
import { drainsAtExit } from "../fixtures/isolation.ts";

let session: ray.SessionInfo;
beforeAll(async () => {
  session = await ray.init({ numCpus: 2, prewarm: 0, metricsPort: 0 });
});
afterAll(() => ray.shutdown());

/** The values by what stands before them. */
function parse(text: string): ReadonlyMap<string, number> {
  return new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => {
        const cut = line.lastIndexOf(" ");
        return [line.slice(0, cut), Number(line.slice(cut + 1))] as const;
      }),
  );
}

describe("metrics of users", () => {
  test("are noted in actors, tasks and the driver, and added up", async () => {
    const [one, two] = [Metered.remote(), Metered.remote()];
    await ray.get([one.note.remote("a", 3), two.note.remote("a", 4), meteredTask.remote("b")]);
    new ray.metrics.Counter("test_calls", { tagKeys: ["who"] }).inc(10, { who: "driver" });
    // A host that is late is gathered from the next time.
    const values = await vi.waitUntil(
      async () => {
        const gathered = parse(await ray.metrics.text());
        const counts = ["a", "b"].map((who) => gathered.get(`ray_test_calls_total{who="${who}"}`));
        return counts.join() === "7,2" && gathered;
      },
      { timeout: 60_000, interval: 0 },
    );
    expect(values.get('ray_test_calls_total{who="driver"}')).toBe(10);
    expect(values.get('ray_test_size_bucket{le="1"}')).toBe(2);
    expect(values.get('ray_test_size_bucket{le="10"}')).toBe(4);
    expect(values.get('ray_test_size_bucket{le="100"}')).toBe(6);
    expect(values.get('ray_test_size_bucket{le="+Inf"}')).toBe(8);
    expect(values.get("ray_test_size_count")).toBe(8);
    expect(values.get("ray_test_size_sum")).toBe(1111);
    expect([3, 4]).toContain(values.get('ray_test_level{who="a",where="in the actor"}'));
    // What was gathered once is not counted again.
    expect(parse(await ray.metrics.text()).get('ray_test_calls_total{who="a"}')).toBe(7);
  });

  test.skipIf(!drainsAtExit)("of a host that ends by itself are not lost", async () => {
    const exiting = Metered.remote();
    await ray.get(exiting.noteAndExit.remote("exits")).catch(() => undefined);
    const name = 'ray_test_calls_total{who="exits"}';
    while (parse(await ray.metrics.text()).get(name) === undefined) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(parse(await ray.metrics.text()).get(name)).toBe(5);
  });

  test("can be read inside an actor", async () => {
    const text = await ray.get(Seer.remote().metrics.remote());
    expect(text).toContain("# TYPE ray_resources gauge");
  });

  test.each<[string, () => unknown, RegExp]>([
    ["a name with a dash", () => new ray.metrics.Counter("a-b"), /unlike "a-b"/],
    ["a name of the session's own", () => new ray.metrics.Gauge("tasks"), /the session's own/],
    [
      "a name that a histogram is written by",
      () => [
        new ray.metrics.Histogram("bad_h", { boundaries: [1] }),
        new ray.metrics.Counter("bad_h_count"),
      ],
      /written as ray_bad_h_count, and so is "bad_h"/,
    ],
    [
      "a histogram that is written by another's name",
      () => [
        new ray.metrics.Counter("bad_i_sum"),
        new ray.metrics.Histogram("bad_i", { boundaries: [1] }),
      ],
      /written as ray_bad_i_sum, and so is "bad_i_sum"/,
    ],
    ["a tag twice", () => new ray.metrics.Counter("bad_t", { tagKeys: ["a", "a"] }), /once/],
    [
      "a tag of Prometheus' own",
      () => new ray.metrics.Counter("bad_u", { tagKeys: ["__name__"] }),
      /unlike "__name__"/,
    ],
    [
      "a histogram's own tag",
      () => new ray.metrics.Histogram("bad_l", { boundaries: [1], tagKeys: ["le"] }),
      /unlike "le"/,
    ],
    [
      "a tag with a line end",
      () => new ray.metrics.Counter("bad_n", { tagKeys: ["a\n"] }),
      /must be a list of names/,
    ],
    [
      "an unknown option",
      () => new ray.metrics.Counter("bad_1", { tags: [] } as never),
      /has no option "tags"/,
    ],
    [
      "tag keys that are no list",
      () => new ray.metrics.Counter("bad_2", { tagKeys: "who" } as never),
      /must be a list of names/,
    ],
    [
      "no boundaries",
      () => new ray.metrics.Histogram("bad_3", {} as never),
      /boundaries must be a list/,
    ],
    [
      "boundaries that fall",
      () => new ray.metrics.Histogram("bad_4", { boundaries: [2, 1] }),
      /boundaries must be a list/,
    ],
    ["a counter that falls", () => new ray.metrics.Counter("bad_5").inc(-1), /above 0, not -1/],
    ["a counter that stays", () => new ray.metrics.Counter("bad_5").inc(0), /above 0, not 0/],
    [
      "a missing tag",
      () => new ray.metrics.Gauge("bad_6", { tagKeys: ["who"] }).set(1),
      /lacks tag "who"/,
    ],
    [
      "an unknown tag",
      () => new ray.metrics.Gauge("bad_7").set(1, { who: "me" }),
      /has no tag "who"/,
    ],
    [
      "an unknown default tag",
      () => new ray.metrics.Gauge("bad_7").setDefaultTags({ who: "me" }),
      /has no tag "who"/,
    ],
    [
      "a gauge without a number",
      () => new ray.metrics.Gauge("bad_8").set("1" as never),
      /takes a number/,
    ],
    [
      "one name for two kinds",
      () => [new ray.metrics.Gauge("bad_9"), new ray.metrics.Counter("bad_9")],
      /"bad_9" exists/,
    ],
  ])("refuse %s", (_, make, message) => {
    expect(make).toThrow(ray.InvalidOptionError);
    expect(make).toThrow(message);
  });
});

describe("metrics of the session", () => {
  test("have names that no user can take", async () => {
    const types = (await ray.metrics.text()).matchAll(/^# TYPE ray_(\w+) /gm);
    const users = /^(?:test|bad|trainer)_/;
    const own = [...types].map(([, name = ""]) => name).filter((name) => !users.test(name));
    expect(own.length).toBeGreaterThan(7);
    for (const name of own) {
      expect(() => new ray.metrics.Counter(name), name).toThrow(/the session's own/);
    }
  });

  test("and those of users are written so that no text of others is a line, a label or a value", async () => {
    const evil = 'a"b\\c\nray_forged{x="y"} 1\n# HELP ray_forged z';
    const counter = new ray.metrics.Counter("test_escapes", {
      description: `${evil}\n`,
      tagKeys: ["who", "where"],
    });
    counter.inc(2, { who: evil, where: "plain" });
    const text = await ray.metrics.text();
    expect(text).not.toMatch(/^(?:ray_forged|# HELP ray_forged)/m);
    const line = text.split("\n").find((one) => one.startsWith("ray_test_escapes_total{")) ?? "";
    // As Prometheus reads it (exposition formats: escapes of label values).
    const read =
      /^ray_test_escapes_total\{who="((?:[^"\\]|\\.)*)",where="plain"\} 2$/.exec(line)?.[1] ?? "";
    const escapes: Readonly<Record<string, string>> = { "\\n": "\n", '\\"': '"', "\\\\": "\\" };
    expect(read.replaceAll(/\\[n"\\]/g, (one) => escapes[one] ?? "")).toBe(evil);
    expect(
      text.split("\n").filter((one) => one.startsWith("# HELP ray_test_escapes_total ")),
    ).toHaveLength(1);
  });

  test("are there by Ray's names", async () => {
    const gate = Gate.remote();
    await ray.get(gate.quick.remote());
    const pending = gate.pass.remote();
    await ray.get((await Promise.resolve(Seer.remote())).actors.remote());
    const values = parse(await ray.metrics.text());
    expect(values.get('ray_actors{Name="GateClass",State="ALIVE"}')).toBe(1);
    expect(values.get('ray_resources{Name="CPU",State="AVAILABLE"}')).toBe(2);
    const tasks = [...values].filter(([name]) =>
      name.startsWith('ray_tasks{Name="GateClass.pass"'),
    );
    expect(tasks.map(([, value]) => value)).toEqual([1]);
    expect(values.has('ray_object_store_memory{Location="MMAP_SHM"}')).toBe(true);
    await ray.kill(gate);
    await ray.wait([pending]);
  });

  test("are served on the loopback, at /metrics and nowhere else", async () => {
    const { metricsPort, metricsToken } = session;
    const url = `http://127.0.0.1:${metricsPort}`;
    const headers = { authorization: `Bearer ${metricsToken}` };
    const answer = await fetch(`${url}/metrics`, { headers });
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await answer.text()).toContain("# TYPE ray_actors gauge");
    expect((await fetch(`${url}/other`, { headers })).status).toBe(404);
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
  });

  test("are served to who has the token that was chosen, which is no short one", async () => {
    await ray.shutdown();
    await expect(ray.init({ metricsToken: "short" })).rejects.toThrow("a token of 32 characters");
    const metricsToken = "0123456789abcdef0123456789abcdef";
    const { metricsPort } = await ray.init({ prewarm: 0, metricsPort: 0, metricsToken });
    const ask = async (token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(`http://127.0.0.1:${metricsPort}/metrics`, { headers })).status;
    };
    expect(await ask(metricsToken)).toBe(200);
    expect(await ask(metricsToken.toUpperCase())).toBe(401);
  });

  test("of a session are not those of the next one, also what was recorded while it ended", async () => {
    const [calls, level] = [new ray.metrics.Counter("ended_calls"), new ray.metrics.Gauge("ended")];
    calls.inc(5);
    level.set(7);
    const ended = ray.shutdown();
    calls.inc(100);
    await ended;
    calls.inc(3);
    await ray.init({ prewarm: 0 });
    const values = parse(await ray.metrics.text());
    expect([values.get("ray_ended_calls_total"), values.get("ray_ended")]).toEqual([3, undefined]);
    // One that begins while the one before ends takes over from there.
    calls.inc(5);
    const second = ray.shutdown();
    calls.inc(5);
    await ray.get(ray.put(1));
    calls.inc(2);
    await second;
    expect(parse(await ray.metrics.text()).get("ray_ended_calls_total")).toBe(2);
  });

  test("are served no more after shutdown; a port that is taken is an error", async () => {
    const taken = session.metricsPort ?? 0;
    await ray.shutdown();
    await expect(fetch(`http://127.0.0.1:${taken}/metrics`)).rejects.toThrow("fetch failed");
    await expect(ray.init({ metricsPort: 70_000 })).rejects.toThrow("must be a port");
    await expect(ray.init({ metricsPort: 1.5 })).rejects.toThrow("metricsPort must be");
    const { createServer } = await import("node:http");
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    await expect(ray.init({ metricsPort: port })).rejects.toThrow(/cannot be served on port/);
    expect(ray.isInitialized()).toBe(false);
    await new Promise((resolve) => other.close(resolve));
  });
});
