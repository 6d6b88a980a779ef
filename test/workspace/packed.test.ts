import { execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packages } from "../fixtures/build-packages.ts";
import { inFull, isFull, sized } from "../fixtures/suite.ts";
import { installAll, nodePackage, packAll } from "./packed-packages.ts";
import { root } from "./source.ts";

const run = promisify(execFile);

/** The oldest Node that the packages say they run on, and some that are too old, as packages. */
const needed = manifestOf("core").engines.node.replace(">=", "");
const oldest = nodePackage(`${needed}.0`);
const tooOld = ["18", "20.20.0", "22.12.0"];

let folder: string;

/** What is built already is packed as it is in the gate; a release builds it anew. */
const scripts = sized({ gate: ["--config.ignore-scripts=true"], full: [] });

/** Packs every package as it would be published and installs the tarballs in an empty folder, with npm as a user would. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-packed-"));
  await installAll(folder, {
    ...(await packAll(folder, scripts)),
    ...(isFull ? { [oldest.name]: oldest.version } : {}),
    ...(isFull
      ? Object.fromEntries(tooOld.map((version) => [alias(version), npmAlias(version)]))
      : {}),
  });
}, 300_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

test("the single-file example runs from the tarballs", async () => {
  await copyFile(join(root, "examples/actors/counter.ts"), join(folder, "counter.ts"));
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
  await copyFile(join(root, "examples/actors/counter.ts"), join(folder, "counter.ts"));
  expect(await at("counter.ts")).toContain("[ 1, 3, 6 ]");
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  expect(await at(main, ...(await scoreArguments()))).toMatch(/samples\s+2/);
  const brief = ["--steps", "1", "--warm-steps", "5", "--latency", "10"];
  expect(await at(main, "quickstart", ...brief)).toContain("one-step-off-policy");
});

/** Other Nodes that this machine has, of which some are too old. */
const installed = [
  ...new Set((process.env["PATH"] ?? "").split(delimiter).map((place) => join(place, "node"))),
].filter((path) => existsSync(path));

test("a Node that is too old is told in one line what is needed, by import, require and the command", async ({
  skip,
}) => {
  const nodes = isFull
    ? tooOld.map((version) => join(folder, "node_modules", alias(version), "bin/node"))
    : installed.filter((path) => isTooOld(execFileSync(path, ["--version"], { encoding: "utf8" })));
  skip(nodes.length === 0, "no Node of this machine is too old; the full suite brings some");
  await writeFile(join(folder, "old.mjs"), 'import "rayling";\n');
  await writeFile(join(folder, "old.cjs"), 'require("rayling");\n');
  await writeFile(
    join(folder, "old-later.mjs"),
    'await import("rayling").catch((error) => console.log(error.message));\n',
  );
  const others = packages.filter((one) => one !== "rayling").map((name) => `@rayling/${name}`);
  const told = `for (const name of ${JSON.stringify(others)})
    await import(name).then(() => console.log(name), (error) => console.log(error.message));\n`;
  await writeFile(join(folder, "old-others.mjs"), told);
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  for (const node of nodes) {
    const version = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
    const line = `rayling needs Node ${needed} or later; this is ${version}`;
    for (const file of ["old.mjs", "old.cjs"]) {
      const { code, stderr } = await failed(node, [file]);
      expect({
        file,
        code,
        says: stderr.split("\n").filter((one) => one.includes("Error")),
      }).toEqual({ file, code: 1, says: [`[Error: ${line}]`] });
    }
    expect((await run(node, ["old-later.mjs"], { cwd: folder })).stdout).toBe(`${line}\n`);
    const { stdout } = await run(node, ["old-others.mjs"], { cwd: folder });
    expect(stdout).toBe(others.map(() => `${line}\n`).join(""));
    expect(await failed(node, [main, "quickstart"])).toEqual({ code: 1, stderr: `${line}\n` });
  }
});

test("what is published has no map that names sources which are not", async () => {
  for (const name of packages) {
    const home = join(folder, "node_modules", name === "rayling" ? name : `@rayling/${name}`);
    const files = await readdir(join(home, "dist"), { recursive: true });
    expect(files.filter((file) => file.endsWith(".map"))).toEqual([]);
    for (const file of files.filter((one) => one.endsWith(".js"))) {
      expect(readFileSync(join(home, "dist", file), "utf8")).not.toContain("sourceMappingURL=");
    }
  }
});

test("what is published under a name has that name: functions of the core, and classes of every package", async () => {
  const code = `import * as core from "@rayling/core";
    const named = Object.entries(core).filter(([, value]) => typeof value === "function");
    console.log(named.length > 60, named.filter(([key, { name }]) => key !== name));
    const others = process.argv.slice(1).map(async (name) => {
      const classes = Object.entries(await import(name)).filter(([, value]) => /^class\\b/.test(String(value)));
      return classes.filter(([key, { name }]) => key !== name).map(([key, one]) => [name, key, one.name]);
    });
    console.log(JSON.stringify((await Promise.all(others)).flat()));`;
  const names = packages.map((name) => (name === "rayling" ? name : `@rayling/${name}`));
  const args = ["--input-type=module", "--eval", code, ...names];
  const { stdout } = await run(process.execPath, args, { cwd: folder });
  expect(stdout).toBe("true []\n[]\n");
});

test("a project of `rayling new` passes its own tests and type check, and its scripts run", async () => {
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  await run(process.execPath, [main, "new", "my-judge"], { cwd: folder });
  // It finds the packages in the folder around it, as after an installation of its own.
  const project = join(folder, "my-judge");
  const script = async (...args: readonly string[]): Promise<string> =>
    (await run("npm", ["run", "--silent", ...args], { cwd: project, env: ofProject() })).stdout;
  const tests = await script("test");
  expect(tests).toMatch(/ pass 7$/m);
  expect(tests).toMatch(/ fail 0$/m);
  expect(await script("start")).toContain("mean scores: { sums: 0.5");
  expect(await script("score")).toContain("is_correct: 5 of 6 samples have a score that agrees");
  await mkdir(join(folder, "node_modules/@types"), { recursive: true });
  await symlink(
    realpathSync(join(root, "node_modules/@types/node")),
    join(folder, "node_modules/@types/node"),
  );
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [tsc, "-p", project], { cwd: project });
  const manifest = readFileSync(join(project, "package.json"), "utf8");
  expect(JSON.parse(manifest)).toMatchObject({ name: "my-judge" });
  expect(manifest).toContain(`"rayling": "^${manifestOf("rayling").version}"`);
});

/** npm starts the project's Node as a user's shell does: nothing of this test run. */
function ofProject(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^(NODE_|VITEST|npm_)/.test(name));
  return { ...Object.fromEntries(own), NO_COLOR: "1" };
}

test.runIf(
  inFull("the project of `rayling new` above scores by the command, with a module of its own"),
)("the command line runs from the tarballs, on a reward module of the user's own", async () => {
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

interface InstalledPackage {
  readonly hasInstallScript?: boolean;
}

test("an installation is small, and runs no script of a package", async () => {
  const text = readFileSync(join(folder, "node_modules/.package-lock.json"), "utf8");
  const lock = JSON.parse(text) as {
    readonly packages: Readonly<Record<string, InstalledPackage>>;
  };
  const brought = Object.entries(lock.packages).filter(([path]) => !/\/node-/.test(path));
  expect(brought.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
  expect(brought.length).toBeLessThanOrEqual(35);
});

test("what only several machines need is asked for when it is needed, with the command that installs it", async () => {
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  const made = await failed(process.execPath, [main, "cert", "--authority", join(folder, "tls")]);
  expect(made.code).toBe(2);
  expect(made.stderr).toContain("npm install selfsigned");

  await writeFile(
    join(folder, "brings-code.ts"),
    `import * as ray from "rayling";
const one = ray.remote(() => 1);
await ray.init({ numCpus: 0, nodes: [process.argv[2]!], runtimeEnv: { workingDir: true } });
await ray.get(one.remote()).catch((error) => console.log(error.name, error.message));
await ray.shutdown();\n`,
  );
  const args = ["brings-code.ts", await agentAddress()];
  const { stdout } = await run(process.execPath, args, { cwd: folder });
  expect(stdout).toMatch(/^RuntimeEnvSetupError .*npm install esbuild/);
});

let shared: ReturnType<typeof startAgent> | undefined;
afterAll(async () => (await shared)?.stop());

/** One serves all tests. */
const agentAddress = async (): Promise<string> => (await (shared ??= startAgent())).address;

/** `rayling node` of the tarballs. */
async function startAgent(): Promise<{ readonly address: string; stop(): void }> {
  const main = join(folder, "node_modules/rayling/dist/cli/main.js");
  const flags = ["--listen", "127.0.0.1:0", "--token-file", join(folder, "token")];
  const cache = ["--num-cpus", "2", "--code-cache", join(folder, "code-cache")];
  const agent = spawn(process.execPath, [main, "node", ...flags, ...cache], { cwd: folder });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    agent.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("RAYLING_NODES=")) resolve();
    });
    agent.once("exit", (code) => reject(new Error(`the agent exited with ${code}`)));
  });
  const [address = ""] = /rayling:\/\/\S+(?=")/.exec(said) ?? [];
  return { address, stop: () => void agent.kill("SIGTERM") };
}

test("a node from the tarballs runs a project that it cannot see, with an npm package of its own", async () => {
  // As npm install esbuild, which a user is told to run.
  await symlink(
    realpathSync(join(root, "node_modules/esbuild")),
    join(folder, "node_modules/esbuild"),
  );
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
  const { stdout } = await run(process.execPath, ["main.ts", await agentAddress()], {
    cwd: project,
  });
  expect(stdout).toBe("aatrue\nbbtrue\n");
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

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.replace("v", "").split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = needed.split(".").map(Number);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

async function failed(
  node: string,
  args: readonly string[],
): Promise<{ readonly code: unknown; readonly stderr: string }> {
  try {
    await run(node, args, { cwd: folder });
  } catch (error) {
    const { code, stderr } = error as { readonly code: unknown; readonly stderr: string };
    return { code, stderr };
  }
  throw new Error(`${node} ${args.join(" ")} did not fail`);
}

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
}

function manifestOf(name: string): Manifest {
  const text = readFileSync(join(root, "packages", name, "package.json"), "utf8");
  return JSON.parse(text) as Manifest;
}

function alias(version: string): string {
  return `node-${version}`;
}

function npmAlias(version: string): string {
  return `npm:${nodePackage(version).name}@${version}`;
}

test("actors of the packages run from the tarballs: a queue travels, and the tiny policy learns in its thread", async () => {
  await writeFile(
    join(folder, "tiny.ts"),
    `import * as ray from "rayling";
import { TinyPolicyActor } from "@rayling/trainer/tiny";
const fill = ray.remote(async (queue: ray.Queue<number>): Promise<void> => queue.put(42));
await ray.init({ prewarm: 0 });
const queue = new ray.Queue<number>();
fill.remote(queue);
console.log("got", await queue.get());
const policy = TinyPolicyActor.remote({ alphabet: "ab", contextLength: 4, width: 8 });
const prompt = [{ role: "user", content: "a" }];
await ray.get(policy.supervise.remote({ pairs: [{ prompt, answer: "bb" }], steps: 40, batchSize: 8, lr: 0.01 }));
for await (const ref of policy.generate.remote({ prompts: [prompt], maxResponseLength: 3, doSample: false })) {
  for (const { response } of await ray.get(ref)) console.log("answers", response);
}
await ray.shutdown();\n`,
  );
  const { stdout } = await run(process.execPath, ["tiny.ts"], { cwd: folder });
  expect(stdout).toBe("got 42\nanswers bb\n");
});
