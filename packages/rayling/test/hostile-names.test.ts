/** A driver whose names, lines and errors have what a terminal obeys: what it shows by itself, and what each command shows of it. */
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { hasObeyed } from "@rayling/core/terminal";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { folder, inProcess, rayling, type Started, startNode } from "./command.ts";
import { found } from "./driver.ts";

const script = fileURLToPath(new URL("fixtures/hostile-names.ts", import.meta.url));
const evil = "\u001b[2J\u001b]0;owned\u0007\u009b2J\u202e\u2066\r\u2028\nforged";

let session: Started;
const output = { stdout: "", stderr: "" };
beforeAll(async () => {
  const directory = await folder(afterAll);
  vi.stubEnv("RAYLING_CONTROL_DIRECTORY", directory);
  // The program's name, too.
  const link = join(directory, `script${evil.replaceAll("\n", "")}.ts`);
  await symlink(script, link);
  session = startNode(link);
  const { child } = session;
  const ready = Promise.withResolvers<void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.on("data", (text: string) => {
      output[name] += text;
      const { stdout, stderr } = output;
      // What hosts write comes by ways of its own.
      const isThere =
        stdout.includes("ready\n") && [stdout, stderr].every((one) => /\) the last$/m.test(one));
      if (isThere && stderr.includes("RaylingWarning")) ready.resolve();
    });
  }
  void session.ended.then(({ stderr }) => ready.reject(new Error(stderr)));
  await ready.promise;
  await found(directory, child.pid);
});
afterAll(async () => {
  session.child.kill("SIGKILL");
  await session.ended;
});

/** Nothing to obey, and no line of its own for what came behind a line end in a name. */
function expectSafe(text: string): void {
  expect(hasObeyed(text), JSON.stringify(text)).toBe(false);
  expect(text).not.toMatch(/^forged/m);
}

test("its own output and errors have nothing that a terminal obeys", () => {
  expect(output.stdout).toMatch(/^\(Class.* actor-\w{6} host-\w{6}\) line/m);
  expect(output.stdout).toMatch(/\) green$/m);
  expect(output.stderr).toContain("RaylingWarning");
  for (const text of [output.stdout, output.stderr]) expect(hasObeyed(text), text).toBe(false);
});

test("an error that nobody catches says what it said, and does nothing in a terminal", async () => {
  const { code, stderr } = await startNode(script, "--uncaught").ended;
  expect(code).toBe(1);
  expect(stderr).toContain("RangeError: error");
  expect(hasObeyed(stderr), JSON.stringify(stderr)).toBe(false);
});

describe("a command shows it without", () => {
  test.each([
    ["list", "actors"],
    ["list", "tasks"],
    ["list", "objects"],
    ["list", "workers"],
    ["list", "nodes"],
    ["summary", "tasks"],
    ["summary", "actors"],
    ["status"],
    ["memory"],
  ])("%s %s", async (...command) => {
    const { code, stdout, stderr } = await inProcess(...command);
    expect([code, stderr]).toEqual([0, ""]);
    expectSafe(stdout);
    vi.stubEnv("FORCE_COLOR", "1");
    const coloured = (await inProcess(...command)).stdout;
    vi.stubEnv("FORCE_COLOR", undefined);
    // The command's own colours, and no others.
    // eslint-disable-next-line no-control-regex -- they are what is looked for
    expectSafe(coloured.replaceAll(/\u001b\[\d+m/g, ""));
  });

  test("lines, with colours only where they are wanted", async () => {
    const { stdout } = await inProcess("logs");
    expect(hasObeyed(stdout)).toBe(false);
    expect(stdout).toMatch(/\) green$/m);
    vi.stubEnv("FORCE_COLOR", "1");
    const coloured = (await inProcess("logs")).stdout;
    vi.stubEnv("FORCE_COLOR", undefined);
    expect(coloured).toContain("\u001b[32mgreen\u001b[0m\n");
    // eslint-disable-next-line no-control-regex -- they are what is looked for
    expect(hasObeyed(coloured.replaceAll(/\u001b\[\d+m/g, ""))).toBe(false);
  });

  test("and for programs it is what it is: JSON and YAML have the same values, escaped", async () => {
    const json = (await inProcess("list", "actors", "--format", "json")).stdout;
    const yaml = (await inProcess("list", "actors", "--format", "yaml")).stdout;
    for (const text of [json, yaml]) expectSafe(text);
    const { rows } = JSON.parse(json) as { rows: { className: string; name: string }[] };
    expect(rows[0]).toMatchObject({ className: `Class${evil}`, name: `actor${evil}` });
    expect(parse(yaml)).toEqual(JSON.parse(json));
    const trace = (await inProcess("timeline", "--out", "-")).stdout;
    expectSafe(trace);
    expect(JSON.stringify(JSON.parse(trace))).toContain(
      JSON.stringify(`Class${evil}`).slice(1, -1),
    );
  });

  test("what is wrong with its arguments", async () => {
    for (const args of [
      [evil],
      ["list", evil],
      ["list", "actors", "--filter", evil],
      ["status", "--address", evil],
      [`--${evil}`],
      ["score", `/no/where/${evil}`, "--reward", evil],
      ["rewards", "report", evil],
      ["train", evil],
      ["report", evil],
      ["timeline", "--out", `/no/where/${evil}`],
    ]) {
      const { code, stdout, stderr } = await inProcess(...args);
      expect(code).not.toBe(0);
      expect(stdout).toBe("");
      expectSafe(stderr);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    }
  });

  test("the name of its program, when it is stopped", async () => {
    const { code, stdout, stderr } = await rayling("stop", "--pid", String(session.child.pid));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("script");
    expectSafe(stdout);
  });
});
