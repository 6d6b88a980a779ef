/** Code reaches a machine that never saw the project: drivers are processes, and what agents may see of the disk is what the kernel lets them. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  type Agent as RunningAgent,
  type AgentOptions,
  readToken,
  startAgent,
} from "@rayling/cluster";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sized } from "../../../test/fixtures/suite.ts";
import { npmProject, pnpmProject, sources, writeFiles } from "./fixtures/users-project.ts";

const cli = fileURLToPath(new URL("../../rayling/dist/cli/main.js", import.meta.url));
const run = promisify(execFile);

/** A mount namespace, in which other files stand where the project is. */
const canHide = spawnSync("unshare", ["-m", "true"]).status === 0;

let folder: string;
let project: string;
let cache: string;
const agents: ChildProcess[] = [];
const agentsHere: RunningAgent[] = [];

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "rayling-code-")));
  project = join(folder, "project");
  cache = join(folder, "cache");
  await mkdir(project);
});
afterEach(async () => {
  await Promise.all(agentsHere.splice(0).map((one) => one.close()));
  for (const child of agents.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
});

interface Agent {
  readonly address: string;
  /** Lines that it wrote so far that contain the text. */
  readonly told: (text: string) => string[];
}

/** In this process: a command of its own costs as much as a driver. */
async function agent(options: AgentOptions = {}): Promise<Agent> {
  const lines: string[] = [];
  const token = await readToken(join(folder, "token"));
  const started = await startAgent({
    token,
    numCpus: 4,
    codeCache: cache,
    onEvent: (line) => lines.push(line),
    ...options,
  });
  agentsHere.push(started);
  return {
    address: started.address,
    told: (text) => lines.filter((line) => line.includes(text)),
  };
}

/**
 * By its command.
 *
 * @param before what is done in its mount namespace, if it has one of its own: a line for the shell, in which $1 is the project and $2 the cache
 */
async function agentCommand(flags: readonly string[] = [], before?: string): Promise<Agent> {
  const command = [
    process.execPath,
    cli,
    "node",
    "--listen",
    "127.0.0.1:0",
    "--token-file",
    join(folder, "token"),
    "--num-cpus",
    "4",
    "--code-cache",
    cache,
    ...flags,
  ];
  const [program = "", ...args] =
    before === undefined
      ? command
      : [
          "unshare",
          "-m",
          "sh",
          "-c",
          `${before} && shift 2 && exec "$@"`,
          "sh",
          project,
          cache,
          ...command,
        ];
  const child = spawn(program, args, { cwd: folder });
  agents.push(child);
  let stdout = "";
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      if (stdout.includes("RAYLING_NODES=")) resolve();
    });
    child.once("exit", () => reject(new Error(`the agent ended: ${stderr}`)));
  });
  const [address = ""] = /rayling:\/\/\S+(?=")/.exec(stdout) ?? [];
  return { address, told: (text) => stderr.split("\n").filter((line) => line.includes(text)) };
}

const hidden = 'mount -t tmpfs none "$1"';

/** Runs the project's main.ts; resolves with what it said. */
function drive(address: string, ...args: readonly string[]): Promise<unknown[]> {
  return said("src/main.ts", address, ...args);
}

async function said(...command: readonly string[]): Promise<unknown[]> {
  const { stdout } = await run(process.execPath, command, { cwd: project });
  const lines = stdout.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as unknown);
}

const packages = async (): Promise<string[]> => {
  const [runtime = ""] = await readdir(cache);
  return readdir(join(cache, runtime, "packages"));
};

describe.skipIf(!canHide)("on a machine that never saw the project (needs root)", () => {
  const main = `await start(true);
const there = Greeter.options(await far()).remote();
const here = Greeter.remote();
say(await ray.get(there.greet.remote("you")));
say(await ray.get([here.sees.remote(args[0]!), there.sees.remote(args[0]!)]));
say(await ray.get(there.data.remote()));
say(await ray.get(there.where.remote()));
const errors = [];
for (const one of [here, there]) {
  try { await ray.get(one.rude.remote("hmpf")); } catch (error) { errors.push(error as TooRude); }
}
say(errors.map((error) => [error instanceof TooRude, error.word, error.message]));
say(errors.map((error) => error.stack!.split("\\n").filter((line) => line.includes("greeter.ts"))));
const queue = new ray.Queue<string>({ actorOptions: await far() });
await ray.get(there.through.remote(queue, "through a queue there"));
say(await queue.get());
say(await ray.get(there.run.remote(double.options(await far()))));
await ray.shutdown();
`;

  // All others have packages of npm; those of pnpm are links.
  const installed = [
    ["pnpm", pnpmProject],
    ["npm", npmProject],
  ] as const;
  test.each(sized({ gate: installed.slice(0, 1), full: [...installed] }))(
    "an actor runs with the packages that %s installed",
    async (_, make) => {
      await make(project, main);
      const { address, told } = await agentCommand([], hidden);
      const heard = await drive(address, join(project, "package.json"));
      expect(heard.slice(0, 3)).toEqual(["<YOU><YOU>", [true, false], "some data"]);
      const { module, cwd } = heard[3] as { module: string; cwd: string };
      expect(module).toMatch(new RegExp(`^file://${cache}/.*/files/src/greeter.ts$`));
      expect(module).toContain(cwd);
      expect(heard[4]).toEqual([
        [true, "hmpf", "too rude: hmpf"],
        [true, "hmpf", "too rude: hmpf"],
      ]);
      const [local, remote] = heard[5] as [string[], string[]];
      expect(local).toHaveLength(1);
      expect(local[0]).toContain(`${project}/src/greeter.ts:35:11`);
      expect(remote).toEqual(local);
      expect(heard.slice(6)).toEqual(["through a queue there", 42]);
      expect(told("took code")).toHaveLength(1);
      // The same once more, by another driver: nothing is sent.
      expect((await drive(address, project)).slice(6)).toEqual(["through a queue there", 42]);
      expect(told("took code")).toHaveLength(1);
      expect(told("joined")).toHaveLength(2);
    },
  );

  test("a disk that is full is said, and nothing is left on it", async () => {
    await npmProject(
      project,
      `await start(true);
say(await problem(Greeter.options(await far()).remote().data.remote()));
await ray.shutdown();\n`,
      // Of random bytes, which cannot be compressed.
      { "node_modules/esm-dep/big.bin": "" },
    );
    await writeFile(
      join(project, "node_modules/esm-dep/big.bin"),
      crypto.getRandomValues(new Uint8Array(65_536)),
    );
    await mkdir(cache);
    const { address, told } = await agentCommand(
      [],
      `${hidden} && mount -t tmpfs -o size=32k none "$2"`,
    );
    const [first] = (await drive(address)) as [{ code: string; message: string }];
    expect(first.code).toBe("RUNTIME_ENV_SETUP");
    expect(first.message).toContain(
      `the code cache ${cache} cannot be written: there is no space left on its disk`,
    );
    const pid = agents[0]?.pid ?? 0;
    const [runtime = ""] = await readdir(`/proc/${pid}/root${cache}`);
    expect(await readdir(`/proc/${pid}/root${cache}/${runtime}/incoming`)).toEqual([]);
    expect(await readdir(`/proc/${pid}/root${cache}/${runtime}/packages`)).toEqual([]);
    expect(told("took code")).toEqual([]);
  });
});

test("the project may be gone when the code is used", async () => {
  await npmProject(
    project,
    `import { renameSync } from "node:fs";
await start(true);
const first = Greeter.options(await far()).remote();
say(await ray.get(first.greet.remote("one")));
renameSync(args[0]!, args[0]! + "-elsewhere");
const second = Greeter.options({ ...(await far()), maxRestarts: 1 }).remote();
say(await ray.get(second.greet.remote("two")));
await ray.shutdown();
`,
  );
  const { address } = await agent();
  expect(await drive(address, project)).toEqual(["<ONE><ONE>", "<TWO><TWO>"]);
});

test("a code cache that is cleared while a session runs is filled again", async () => {
  await npmProject(
    project,
    `import { rmSync } from "node:fs";
await start(true);
const options = { ...(await far()), maxRestarts: 1, maxTaskRetries: 1 };
const first = Greeter.options(options).remote();
const { pid } = await ray.get(first.where.remote());
for (const path of args) rmSync(path, { recursive: true, force: true });
const both = [Greeter.options(options).remote(), Greeter.options(options).remote()];
say(await ray.get(both.map((one) => one.greet.remote("new"))));
say(await ray.get(double.options(await far()).remote(4)));
for (const path of args) rmSync(path, { recursive: true, force: true });
process.kill(pid, "SIGKILL");
say(await ray.get(first.greet.remote("again")));
await ray.shutdown();
`,
  );
  const { address, told } = await agent();
  expect(await drive(address, cache)).toEqual([["<NEW><NEW>", "<NEW><NEW>"], 8, "<AGAIN><AGAIN>"]);
  expect(told("took code")).toHaveLength(3);
});

test("a folder goes as it is, without what its .gitignore and excludes name", async () => {
  await npmProject(
    project,
    `import { Computed } from "./computed.ts";
await start(".", ["secret.txt", "src/left-out"]);
const actor = Computed.options(await far()).remote();
say(await ray.get(actor.load.remote("plugin")));
say(await ray.get(actor.listed.remote()));
await ray.shutdown();
`,
    {
      "src/computed.ts": `import { readdirSync, readFileSync } from "node:fs";
import * as ray from "rayling";
export const Computed = ray.remote(class Computed {
  async load(name: string): Promise<string> {
    return ((await import("./" + name + ".ts")) as { hello: string }).hello;
  }
  listed(): unknown {
    return [readFileSync("data/numbers.txt", "utf8"), readdirSync(".").sort(), readdirSync("src").sort()];
  }
});\n`,
      "src/plugin.ts": `export const hello: string = "from a plugin";\n`,
      "src/left-out/notes.txt": "x",
      "data/numbers.txt": "1 2 3",
      "data/.gitignore": "*.tmp\n",
      "data/half.tmp": "x",
      "secret.txt": "x",
      "built/out.js": "x",
      ".gitignore": "/built\n",
      ".git/HEAD": "x",
    },
  );
  const { address } = await agent();
  expect(await drive(address)).toEqual([
    "from a plugin",
    [
      "1 2 3",
      [".gitignore", "data", "node_modules", "package.json", "src"],
      ["computed.ts", "data.txt", "greeter.ts", "helper.ts", "main.ts", "plugin.ts"],
    ],
  ]);
});

test("an actor or a task may have code of its own, also without rights of its own", async () => {
  await npmProject(
    project,
    `await ray.init({ numCpus: 1, prewarm: 0, nodes: [address] });
const runtimeEnv = { workingDir: true, permissions: {} } as const;
const actor = Greeter.options({ ...(await far()), runtimeEnv }).remote();
say(await ray.get(actor.greet.remote("you")));
say(await ray.get(actor.data.remote()));
for (const path of args) say(((await problem(actor.sees.remote(path))) as { code: string }).code);
say(await ray.get(double.options({ ...(await far()), runtimeEnv }).remote(4)));
await ray.shutdown();
`,
  );
  const { address, told } = await agent();
  const paths = [join(project, "package.json"), join(folder, "token")];
  expect(await drive(address, ...paths)).toEqual([
    "<YOU><YOU>",
    "some data",
    "ERR_ACCESS_DENIED",
    "ERR_ACCESS_DENIED",
    8,
  ]);
  expect(told("took code")).toHaveLength(1);
});

/** A folder is brought as it is by the case above, too. */
const brought: readonly [string, readonly string[]][] = [
  ["the modules", ["--working-dir"]],
  ["a folder", ["--working-dir", "."]],
];
test.each(sized({ gate: brought.slice(0, 1), full: brought }))(
  "rayling run brings %s for a script that says nothing of it",
  async (_, flags) => {
    await npmProject(
      project,
      `import { renameSync } from "node:fs";
await ray.init({ numCpus: 0 });
say(await ray.get(Greeter.remote().greet.remote("you")));
renameSync("src", "away");
say(await ray.get(Greeter.remote().greet.remote("all")));
await ray.shutdown();\n`,
    );
    const { address, told } = await agent();
    expect(await said(cli, "run", "src/main.ts", "--nodes", address, ...flags)).toEqual([
      "<YOU><YOU>",
      "<ALL><ALL>",
    ]);
    expect(told("took code")).toHaveLength(1);
  },
);

test("a module that was imported later is brought when it is needed", async () => {
  await npmProject(
    project,
    `await start(true);
say(await ray.get(Greeter.options(await far()).remote().greet.remote("early")));
const { Late } = (await import("./" + "late.ts")) as typeof import("./late.ts");
say(await ray.get(Late.options(await far()).remote().hello.remote()));
await ray.shutdown();
`,
    {
      "src/late.ts": `import * as ray from "rayling";
export const Late = ray.remote(class Late { hello(): string { return "late"; } });\n`,
    },
  );
  const { address, told } = await agent();
  expect(await drive(address)).toEqual(["<EARLY><EARLY>", "late"]);
  expect(told("took code")).toHaveLength(2);
});

test("a machine that is used later gets the files as they are then", async () => {
  await npmProject(
    project,
    `import { writeFileSync } from "node:fs";
const nodes = [address, ...args];
await ray.init({ numCpus: 1, prewarm: 0, nodes, runtimeEnv: { workingDir: true } });
for (const { nodeId } of (await ray.nodes()).slice(1)) {
  const there: ray.ActorOptions = { schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: false } };
  say(await ray.get(Greeter.options(there).remote().greet.remote("me")));
  writeFileSync("src/helper.ts", "export const shout = (text: string): string => text + '!';\\n");
}
await ray.shutdown();\n`,
  );
  const others = sized({ gate: ["other"], full: ["other", "third"] });
  const one = await agent();
  const later = await Promise.all(others.map((name) => agent({ codeCache: join(folder, name) })));
  expect(await drive(one.address)).toEqual(["<ME><ME>"]);
  await writeFiles(project, sources);
  // The first has it, so nothing is packed before the files change.
  expect(await drive(one.address, ...later.map(({ address }) => address))).toEqual([
    "<ME><ME>",
    ...later.map(() => "<me><me>!"),
  ]);
  for (const { told } of [one, ...later]) expect(told("took code")).toHaveLength(1);
});

test("drivers that bring the same at the same time have it once", async () => {
  await npmProject(
    project,
    `await start(true);
say(await ray.get(Greeter.options(await far()).remote().greet.remote("all")));
await ray.shutdown();\n`,
  );
  const { address } = await agent();
  const count = sized({ gate: 2, full: 3 });
  const heard = await Promise.all(Array.from({ length: count }, () => drive(address)));
  expect(heard).toEqual(Array.from({ length: count }, () => ["<ALL><ALL>"]));
  expect(await packages()).toHaveLength(1);
});

test("what was changed in the cache is brought again", async () => {
  await npmProject(
    project,
    `await start(true);
say(await ray.get(Greeter.options(await far()).remote().greet.remote("me")));
await ray.shutdown();\n`,
  );
  expect(await drive((await agent()).address)).toEqual(["<ME><ME>"]);
  const [id = ""] = await packages();
  const [runtime = ""] = await readdir(cache);
  const helper = join(cache, runtime, "packages", id, "files/src/helper.ts");
  expect(await readFile(helper, "utf8")).toContain("toUpperCase");
  await rm(helper);
  await writeFile(helper, `export const shout = (): string => "changed, with as many bytes..";\n`);
  const { address, told } = await agent();
  expect(await drive(address)).toEqual(["<ME><ME>"]);
  expect(told("was changed on the disk")).toHaveLength(1);
  expect(told("took code")).toHaveLength(1);
});

test("a project that nobody brings is missed, and the error says what would bring it", async () => {
  await npmProject(
    project,
    `import { renameSync } from "node:fs";
await ray.init({ numCpus: 1, prewarm: 0, nodes: [address] });
const options = await far();
renameSync(args[0]!, args[0]! + "-elsewhere");
say(await problem(Greeter.options(options).remote().data.remote()));
await ray.shutdown();\n`,
  );
  const { address } = await agent();
  const [{ message }] = (await drive(address, project)) as [{ message: string }];
  expect(message).toContain(
    "no such file on the machine of the worker. Where the project is not, runtimeEnv: { workingDir: true } brings it",
  );
});

describe("what cannot be brought rejects with RuntimeEnvSetupError:", () => {
  const one = `await start(true);
say(await problem(Greeter.options(await far()).remote().data.remote()));
say(await problem(double.options(await far()).remote(1)));
await ray.shutdown();\n`;

  test("more than the machine takes", async () => {
    await npmProject(project, one, { "node_modules/esm-dep/big.txt": "x".repeat(30_000) });
    const { address, told } = await agentCommand(["--max-code-size", "20KiB"]);
    const problems = (await drive(address)) as { code: string; message: string }[];
    for (const { code, message } of problems) {
      expect(code).toBe("RUNTIME_ENV_SETUP");
      expect(message).toMatch(
        /takes 20\.5 kB at most.*runtimeEnv\.excludes; the largest: node_modules\/esm-dep/,
      );
    }
    expect(problems).toHaveLength(2);
    expect(told("took code")).toEqual([]);
  });

  test("native code for other machines", async () => {
    // The beginning of a shared object for an ARM machine.
    const elf = Buffer.alloc(64);
    elf.write("\u007fELF");
    elf.writeUInt16LE(process.arch === "arm64" ? 62 : 183, 18);
    await npmProject(project, one);
    await writeFile(join(project, "node_modules/esm-dep/fast.node"), elf);
    const { address } = await agent();
    const [{ code, message }] = (await drive(address)) as [{ code: string; message: string }];
    expect(code).toBe("RUNTIME_ENV_SETUP");
    expect(message).toMatch(
      /npm package esm-dep has native code for linux-\w+, and node .* is \w+-\w+/,
    );
  });

  test("a link that leads out of the folder", async () => {
    await npmProject(
      project,
      `import { symlinkSync } from "node:fs";
symlinkSync("/etc", args[0]! + "/outside");
await start(".");
say(await problem(Greeter.options(await far()).remote().data.remote()));
await ray.shutdown();\n`,
    );
    const [{ code, message }] = (await drive((await agent()).address, project)) as [
      { code: string; message: string },
    ];
    expect(code).toBe("RUNTIME_ENV_SETUP");
    expect(message).toContain(`the link ${project}/outside leads out of the folder, to /etc`);
  });
});
