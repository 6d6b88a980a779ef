/** `rayling run`: a script with nodes for its init, as if it had been started by itself. */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { folder, inProcess, rayling, start } from "./command.ts";
import { sized } from "../../../test/fixtures/suite.ts";

async function scriptOf(text: string): Promise<string> {
  const path = join(await folder(), "script.ts");
  await writeFile(path, text);
  return path;
}

test("gives the script its nodes and arguments, and has its exit code", async () => {
  const path = await scriptOf(
    `const { RAYLING_NODES, RAYLING_TLS } = process.env;
     console.log(JSON.stringify([RAYLING_NODES, RAYLING_TLS, process.argv.slice(2), process.version]));
     console.error("to stderr");
     process.exitCode = 7 as number;`,
  );
  const flags = ["--nodes", "rayling://t@a:1,rayling://t@b:2", "--nodes", "raylings://t@[::1]:3"];
  const tls = ["--tls", "/tmp/certificates"];
  expect(await rayling("run", path, "one", ...flags, ...tls, "--", "--two", "3")).toMatchObject({
    code: 7,
    stdout: `${JSON.stringify([
      "rayling://t@a:1,rayling://t@b:2,raylings://t@[::1]:3",
      "/tmp/certificates",
      ["one", "--two", "3"],
      process.version,
    ])}\n`,
    stderr: "to stderr\n",
  });
  vi.stubEnv("RAYLING_NODES", "rayling://t@c:4");
  expect((await rayling("run", path)).stdout).toContain('["rayling://t@c:4",null,[]');
});

// They stand in a list.
const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
test.each(sized({ gate: signals.slice(0, 1), full: [...signals] }))(
  "passes %s on, to one that handles it and to one that does not",
  async (signal) => {
    const handling = await scriptOf(
      `process.on(${JSON.stringify(signal)}, () => process.exit(3)); setInterval(() => {}, 1e6); console.log("ready");`,
    );
    const plain = await scriptOf(`setInterval(() => {}, 1e6); console.log("ready");`);
    for (const [path, end] of [
      [handling, { code: 3, signal: null }],
      [plain, { code: null, signal }],
    ] as const) {
      const { child, ended } = start("run", path);
      await once(child.stdout as NodeJS.ReadableStream, "data");
      child.kill(signal);
      expect(await ended).toMatchObject(end);
    }
  },
);

test("ends as a script that was killed", async () => {
  const path = await scriptOf(`process.kill(process.pid, "SIGKILL");`);
  expect(await rayling("run", path)).toMatchObject({ code: null, signal: "SIGKILL" });
});

test.each([
  [["run"], /missing required argument 'script'/],
  [["run", "/not/there.ts"], /'\/not\/there\.ts' is invalid.*There is no such file/],
  [
    ["run", import.meta.filename, "--nodes", "host:1"],
    /--nodes: \(6 characters that may hold a token\): is not of the form rayling:\/\/token@host:port/,
  ],
  [
    ["run", import.meta.filename, "--nodes", "http://secret@host:1"],
    /--nodes: http:\/\/host:1: is not of the form/,
  ],
  [
    ["run", import.meta.filename, "--working-dir", "/not/there"],
    /--working-dir.*There is no such folder/,
  ],
  [["run", import.meta.filename, "--epochs", "3"], /unknown option '--epochs'/],
])("bad input is one line and exit code 2: %j", async (args, message) => {
  const { code, stdout, stderr } = await inProcess(...args);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(stderr).toMatch(message);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
});
