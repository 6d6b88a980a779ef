import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { resolveImport, root, type SourceFile, sourceFiles } from "./source.ts";

/** The page about the whole, and those about the rooms of one package. */
const architecture = [
  "ARCHITECTURE.md",
  ...["core", "reward-loop", "trainer"].map((name) => `packages/${name}/ARCHITECTURE.md`),
]
  .map((path) => readFileSync(join(root, path), "utf8"))
  .join("\n");

/**
 * Rooms of a package in order: a file imports its own room and rooms before it. A file beside the
 * rooms may be named as one; the others are entries ("index"), which come last.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  core: [
    "shared",
    "telemetry",
    "protocol",
    "transport",
    "store",
    "rpc",
    "caller",
    "host",
    "placement",
    "runtime",
    "api",
    "index",
  ],
  "reward-loop": [
    "outcome",
    "errors",
    "report-page",
    "rows",
    "batch",
    "chat-template",
    "options",
    "time",
    "spend",
    "faults",
    "client",
    "tokenizer",
    "reward-model",
    "sample",
    "settings",
    "limits",
    "exchange",
    "executor",
    "worker",
    "pipeline",
    "record",
    "agreement",
    "compose",
    "manager",
    "agent",
    "judge",
    "config",
    "index",
  ],
  dashboard: ["views", "samples", "training", "server", "index"],
  trainer: [
    "values",
    "errors",
    "algorithms",
    "metrics",
    "balance",
    "policy",
    "data",
    "checkpoint",
    "config",
    "tracking",
    "settings",
    "samples",
    "record",
    "rollouts",
    "validation",
    "groups",
    "step",
    "schedules",
    "ppo-trainer",
    "tasks",
    "run",
    "quickstart",
    "index",
  ],
};

/** Rooms that import nothing of each other, whatever their order. */
const apart: Readonly<Record<string, readonly string[]>> = { core: ["host", "placement"] };

/** Sister packages that each package may import. */
const sisters: Readonly<Record<string, readonly string[]>> = {
  core: [],
  cluster: ["@rayling/core/cluster"],
  "on-ray": ["@rayling/cluster", "@rayling/core/cluster"],
  "config-tree": [],
  "data-proto": [],
  "reward-manager-registry": [],
  trainer: [
    "@rayling/config-tree",
    "@rayling/config-tree/nearest",
    "@rayling/config-tree/options",
    "@rayling/core",
    "@rayling/core/dashboard",
    "@rayling/core/terminal",
    "@rayling/data-proto",
    "@rayling/reward-loop",
    "@rayling/reward-loop/client",
    "@rayling/reward-loop/config",
    "@rayling/reward-loop/page",
    "@rayling/reward-loop/reward-log",
    "@rayling/reward-loop/rows",
    "@rayling/reward-loop/tokenizer",
    "@rayling/reward-manager-registry",
    "@rayling/reward-manager-registry/values",
  ],
  "reward-loop": [
    "@rayling/config-tree",
    "@rayling/config-tree/nearest",
    "@rayling/config-tree/options",
    "@rayling/core",
    "@rayling/core/code",
    "@rayling/core/dashboard",
    "@rayling/core/http",
    "@rayling/core/terminal",
    "@rayling/data-proto",
    "@rayling/reward-manager-registry",
    "@rayling/reward-manager-registry/values",
  ],
  dashboard: [
    "@rayling/core/dashboard",
    "@rayling/core/http",
    "@rayling/data-proto",
    "@rayling/reward-loop/reward-log",
    "@rayling/trainer/runs",
  ],
  rayling: [
    "@rayling/cluster",
    "@rayling/config-tree",
    "@rayling/config-tree/nearest",
    "@rayling/core",
    "@rayling/core/cluster",
    "@rayling/core/code",
    "@rayling/core/control",
    "@rayling/core/dashboard",
    "@rayling/core/floor",
    "@rayling/core/http",
    "@rayling/core/python",
    "@rayling/core/terminal",
    "@rayling/dashboard",
    "@rayling/data-proto",
    "@rayling/on-ray",
    "@rayling/reward-loop",
    "@rayling/reward-loop/options",
    "@rayling/reward-loop/page",
    "@rayling/reward-loop/reward-log",
    "@rayling/reward-loop/rows",
    "@rayling/reward-manager-registry",
    "@rayling/reward-manager-registry/values",
    "@rayling/trainer",
    "@rayling/trainer/config",
    "@rayling/trainer/run",
    "@rayling/trainer/runs",
    "@rayling/trainer/quickstart",
  ],
};

const restricted = ["worker_threads", "net", "tls", "child_process", "http"];

const packageFiles = sourceFiles("packages/*/src/**/*.ts");
const outsideFiles = sourceFiles("examples/**/*.ts", "bench/**/*.ts", "test/**/*.ts");

const packageOf = (path: string): string => path.split("/")[1] as string;
const roomOf = (path: string): string => {
  const [, , , name = "", ...rest] = path.split("/");
  const room = name.replace(/\.ts$/, "");
  const isRoom = rest.length > 0 || rooms[packageOf(path)]?.includes(room) === true;
  return isRoom ? room : "index";
};
const relativeImports = (file: SourceFile): string[] =>
  file.imports.filter((one) => one.startsWith(".")).map((one) => resolveImport(file.path, one));

describe("the layers", () => {
  test("are looked at: there are files in every package and room", () => {
    expect([...new Set(packageFiles.map(({ path }) => packageOf(path)))].toSorted()).toEqual(
      Object.keys(sisters).toSorted(),
    );
    for (const [name, expected] of Object.entries(rooms)) {
      const found = packageFiles.filter(({ path }) => packageOf(path) === name);
      const own = new Set(found.map(({ path }) => roomOf(path)));
      expect(own).toEqual(new Set(expected));
    }
  });

  test("a package imports the sisters it may, by name", () => {
    const wrong = packageFiles.flatMap(({ path, imports }) =>
      imports
        .filter((one) => /^(@rayling\/|rayling$|rayling\/)/.test(one))
        .filter((one) => !(sisters[packageOf(path)] ?? []).includes(one))
        .map((one) => `${path} imports ${one}`),
    );
    expect(wrong).toEqual([]);
  });

  test("a package reaches no other by path, and neither do examples, bench and test", () => {
    const leaving = packageFiles.flatMap((file) =>
      relativeImports(file)
        .filter((target) => !target.startsWith(`packages/${packageOf(file.path)}/src/`))
        .map((target) => `${file.path} imports ${target}`),
    );
    const entering = outsideFiles.flatMap((file) =>
      relativeImports(file)
        .filter((target) => /^packages\/[^/]+\//.test(target))
        .map((target) => `${file.path} imports ${target}`),
    );
    expect([...leaving, ...entering]).toEqual([]);
  });

  test.each(Object.entries(rooms))(
    "a file of %s imports its own room and rooms before it",
    (name, order) => {
      const wrong = packageFiles
        .filter(({ path }) => packageOf(path) === name && roomOf(path) !== "index")
        .flatMap((file) =>
          relativeImports(file)
            .filter((target) => {
              const [from, to] = [roomOf(file.path), roomOf(target)];
              const own = apart[name] ?? [];
              const meets = from !== to && own.includes(from) && own.includes(to);
              return meets || order.indexOf(to) > order.indexOf(from);
            })
            .map((target) => `${file.path} imports ${target}`),
        );
      expect(wrong).toEqual([]);
    },
  );

  test("there is no cycle of imports, types included", () => {
    const graph = new Map(packageFiles.map((file) => [file.path, relativeImports(file)]));
    const state = new Map<string, "open" | "done">();
    const cycles: string[] = [];
    const visit = (path: string, way: readonly string[]): void => {
      if (state.get(path) === "done") return;
      if (state.get(path) === "open") {
        cycles.push([...way.slice(way.indexOf(path)), path].join(" -> "));
        return;
      }
      state.set(path, "open");
      for (const target of graph.get(path) ?? []) visit(target, [...way, path]);
      state.set(path, "done");
    };
    for (const path of graph.keys()) visit(path, []);
    expect(cycles).toEqual([]);
  });

  test("threads, sockets and processes are touched only by their owners, which the pages about the architecture name", () => {
    const wrong = packageFiles
      .filter(({ imports }) =>
        imports.some((one) => restricted.includes(one.replace(/^node:/, ""))),
      )
      .filter(({ path }) => !architecture.includes(`\`${path}\``))
      .map(({ path }) => path);
    expect(wrong).toEqual([]);
  });

  test("core and cluster wait by Node's own timers, whatever a test puts in the place of the globals", () => {
    const own = "packages/core/src/shared/machine/timers.ts";
    const replaced =
      /(?<![\w.#])(?:(?:globalThis|process)\.)?(?:(?:set|clear)(?:Timeout|Interval|Immediate)|queueMicrotask|nextTick|hrtime)\(/;
    const wrong = packageFiles
      .filter(({ path }) => ["core", "cluster"].includes(packageOf(path)) && path !== own)
      .flatMap(({ path, text, imports }) =>
        [
          ...imports.filter((one) => /^(node:)?timers\b/.test(one)),
          ...text.split("\n").filter((line) => !/^\s*(\*|\/)/.test(line) && replaced.test(line)),
        ].map((what) => `${path}: ${what.trim()}`),
      );
    expect(wrong).toEqual([]);
  });

  test("the pages about the architecture name no file that is not there", () => {
    const named = [
      ...architecture.matchAll(/`((?:packages|test|bench|examples)\/[\w./-]+\.ts)`/g),
    ].map((match) => match[1] as string);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect(named.length).toBeGreaterThan(0);
  });

  test.each([
    ["a plain actor call", 12],
    ["a reward sample without policies", 8],
  ])("the types that %s meets on its way are at most %i, and are declared", (what, most) => {
    const line = architecture.split("\n").find((one) => one.startsWith(`- ${what},`)) ?? "";
    const [, list = ""] = /, \d+: (.*?)\./.exec(line) ?? [];
    const types = [...list.matchAll(/`(\w+)`/g)].map((match) => match[1] as string);
    expect(types.length).toBeGreaterThan(0);
    expect(types.length).toBeLessThanOrEqual(most);
    const isDeclared = (name: string): boolean =>
      packageFiles.some(({ text }) =>
        new RegExp(`^export (?:class|interface|type) ${name}\\b`, "m").test(text),
      );
    expect(types.filter((name) => !isDeclared(name))).toEqual([]);
  });
});
