/**
 * The dashboard for Grafana asks for metrics that a session with a reward loop and a training has,
 * and Prometheus' own linter has nothing against them. promtool is asked where it is on the PATH or
 * named by RAYLING_PROMTOOL; its rules for names are checked in any case.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { Tracking } from "@rayling/trainer";

interface Target {
  readonly refId: string;
  readonly expr: string;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly h: number;
    readonly w: number;
    readonly x: number;
    readonly y: number;
  };
  readonly targets?: readonly Target[];
}

interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string }[] };
  readonly panels: readonly Panel[];
}

const file = join(import.meta.dirname, "../grafana/rayling.json");
const dashboard = JSON.parse(readFileSync(file, "utf8")) as Dashboard;
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** A reward function whose endpoint refuses the first call. */
const refusesOnce = `
let calls = 0;
export function score({ solutionStr }) {
  calls += 1;
  if (calls === 1) throw Object.assign(new Error("too many requests"), { status: 429 });
  return Number(solutionStr);
}
`;

let folder: string;
let text: string;

/** Metrics of a scrape by name, each with its type and its help. */
function familiesOf(scrape: string): Map<string, { type: string; help: string }> {
  const families = new Map<string, { type: string; help: string }>();
  for (const [, kind, name = "", rest = ""] of scrape.matchAll(/^# (HELP|TYPE) (\S+) (.*)$/gm)) {
    const known = families.get(name) ?? { type: "", help: "" };
    families.set(name, kind === "TYPE" ? { ...known, type: rest } : { ...known, help: rest });
  }
  return families;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-grafana-"));
  const path = join(folder, "reward.mjs");
  await writeFile(path, refusesOnce);
  await ray.init({ prewarm: 0, taskEvents: true });
  const loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: { path, name: "score" },
    limits: { endpoint: "judge", concurrency: 2 },
    retry: { attempts: 2, baseMs: 1 },
    spend: { prices: { perCall: 0.01 } },
  });
  await loop.computeScore({ response: "1", dataSource: "test", groundTruth: "" });
  const tracking = await Tracking.open({
    logger: "prometheus",
    projectName: "maths",
    experimentName: "grpo",
    directory: folder,
  });
  tracking.progress({ step: 1, inFlight: 1 });
  tracking.log({ "critic/score/mean": 1, "timing_s/OpenAI": 2, overlap_ratio: 1 }, 1);
  await tracking.close();
  // Notes of the limiter come a moment later.
  text = await vi.waitFor(
    async () => {
      const scrape = await ray.metrics.text();
      expect(scrape).toContain("ray_reward_endpoint_refused_total");
      return scrape;
    },
    { timeout: 60_000 },
  );
  await loop.close();
});

afterAll(async () => {
  await ray.shutdown();
  await rm(folder, { recursive: true, force: true });
});

test("every panel has queries of metrics that a scrape has", () => {
  const families = familiesOf(text);
  const names = new Set(
    [...families].flatMap(([name, { type }]) =>
      type === "histogram" ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
    ),
  );
  const asked = expressions.flatMap((one) => one.match(/\bray_\w+/g) ?? []);
  expect(asked.length).toBeGreaterThan(20);
  expect([...new Set(asked)].filter((name) => !names.has(name))).toEqual([]);
  for (const { type, title, targets } of dashboard.panels) {
    expect(targets === undefined, title).toBe(type === "row");
  }
});

test("the file has what Grafana needs: ids, places side by side, variables that queries name", () => {
  const { panels, templating, schemaVersion } = dashboard;
  expect(schemaVersion).toBeGreaterThanOrEqual(36);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  const variables = new Set([...templating.list.map(({ name }) => name), "__rate_interval"]);
  const used = [...JSON.stringify(panels).matchAll(/\$\{?(\w+)/g)].map(([, name = ""]) => name);
  expect(used.filter((name) => !variables.has(name))).toEqual([]);
});

test("names and types follow the rules of Prometheus' linter", () => {
  const families = [...familiesOf(text)];
  expect(families.length).toBeGreaterThan(15);
  for (const [name, { type, help }] of families) {
    expect(help, name).not.toBe("");
    expect(name.endsWith("_total"), `${name} is a ${type}`).toBe(type === "counter");
    expect(name, "snake_case").not.toMatch(/[a-z][A-Z]/);
    expect(name, "whole words for units").not.toMatch(/_(?:s|ms|us|sec|b|kb|mb|gb|m|h|d)(?:_|$)/);
    expect(name, "base units").not.toMatch(/milliseconds|minutes|kilobytes|megabytes/);
    expect(name, "no type").not.toMatch(/_(?:gauge|counter|histogram|summary)(?:_|$)/);
  }
});

const promtool = process.env["RAYLING_PROMTOOL"] ?? "promtool";
const hasPromtool = ((): boolean => {
  try {
    execFileSync(promtool, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

test.skipIf(!hasPromtool)(
  "promtool has nothing against the scrape and reads all queries",
  async () => {
    const lint = execFileSync(promtool, ["check", "metrics"], { input: text, encoding: "utf8" });
    expect(lint).toBe("");
    const rules = expressions.map((expr, index) => ({
      record: `query:${index}`,
      expr: expr.replaceAll("$__rate_interval", "1m"),
    }));
    const path = join(folder, "rules.json");
    // JSON is YAML.
    await writeFile(path, JSON.stringify({ groups: [{ name: "queries", rules }] }));
    const read = execFileSync(promtool, ["check", "rules", path], { encoding: "utf8" });
    expect(read).toContain(`SUCCESS: ${rules.length} rules found`);
  },
);
