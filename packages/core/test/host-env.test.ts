/** Where hosts have their compiled code: in a directory that nobody else may write to. */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RuntimeEnv } from "../src/rpc/directory.ts";
import { mergedEnv, ownEnv, widening } from "../src/runtime/launch/inherited-env.ts";

const name = `rayling-code-${process.getuid?.() ?? "user"}`;
let folder: string;
const warning = vi.spyOn(process, "emitWarning");

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rayling-env-"));
  vi.stubEnv("TMPDIR", folder);
  vi.stubEnv("NODE_COMPILE_CACHE", undefined);
  vi.resetModules();
  warning.mockReset().mockImplementation(() => undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

async function envOf(env?: Readonly<Record<string, string>>): Promise<NodeJS.ProcessEnv> {
  const { hostEnv } = await import("../src/runtime/launch/host-env.ts");
  return hostEnv(env);
}

describe("the environment of hosts", () => {
  test("has what the driver has, but for its tokens, and what is set for the host", async () => {
    vi.stubEnv("RAYLING_NODES", "rayling://secret@host:1");
    vi.stubEnv("RAYLING_METRICS_TOKEN", "secret");
    vi.stubEnv("SOME_OTHER", "here");
    expect(JSON.stringify(await envOf())).not.toContain("secret");
    expect(await envOf({ A: "b" })).toMatchObject({ SOME_OTHER: "here", A: "b" });
    // Whoever names it means it.
    const env = await envOf({ RAYLING_NODES: "rayling://other@host:1" });
    expect(env["RAYLING_NODES"]).toBe("rayling://other@host:1");
  });
});

describe("${NAME} in a variable", () => {
  const merged = (...layers: readonly Readonly<Record<string, string>>[]): RuntimeEnv["env"] =>
    layers.reduce<RuntimeEnv | undefined>((outer, env) => mergedEnv(outer, ownEnv({ env })), {})
      ?.env;

  test("is that of the environment, and empty where there is none", async () => {
    vi.stubEnv("RAYLING_NODES", "rayling://secret@host:1");
    vi.stubEnv("SOME_OTHER", "here, not ${HOME}, $&");
    const env = {
      A: "a:${SOME_OTHER}",
      B: "x${NO_SUCH}y",
      C: "$SOME_OTHER ${}",
      D: "${RAYLING_NODES}",
    };
    expect(await envOf({ ...env, E: "${constructor}" })).toMatchObject({
      A: "a:here, not ${HOME}, $&",
      B: "xy",
      C: "$SOME_OTHER ${}",
      // The tokens of the driver are in no environment.
      D: "",
      E: "",
    });
  });

  test("is that before it, or that of the settings around it, and filled in once", async () => {
    vi.stubEnv("BASE", "/bin");
    const session = { BASE: "/session:${BASE}", SESSION: "${BASE}!" };
    const parent = { BASE: "/parent:${BASE}", LATER: "${CHILD}", CHILD: "parent" };
    const child = { BASE: "/child:${BASE}", CHILD: "${CHILD}'s", SECOND: "${CHILD}" };
    expect(await envOf(merged(session, parent, child))).toMatchObject({
      BASE: "/child:/parent:/session:/bin",
      SESSION: "/session:/bin!",
      // What a child sets is nothing to its parent's.
      LATER: "",
      CHILD: "parent's",
      SECOND: "parent's",
    });
    // Settings that are handed down are merged with the session's later.
    const handedDown = merged(parent, child) ?? {};
    expect(mergedEnv({ env: merged(session) ?? {} }, { env: handedDown })?.env).toEqual(
      merged(session, parent, child),
    );
  });

  test("gives confined code no flags of Node", () => {
    for (const env of [
      { A: "--allow-fs-read=*", NODE_OPTIONS: "${A}" },
      { A: "ow-worker", NODE_OPTIONS: "--all${A}" },
      { NODE_OPTIONS: "--no-deprecation ${OF_SOMEBODY}" },
    ]) {
      expect(widening({ env }, { permissions: {} })).toContain("env.NODE_OPTIONS");
      expect(widening({ env }, { env: {} })).toBeUndefined();
    }
    const plain = { A: "--no-deprecation", NODE_OPTIONS: "${A}" };
    expect(widening({ env: plain }, { permissions: {} })).toBeUndefined();
  });
});

describe("permitted places hold", () => {
  test.each<[place: string, asked: string, isHeld: boolean]>([
    ["*", "/etc", true],
    ["/", "/etc", true],
    ["/data", "*", false],
    ["/data", "/data", true],
    ["/data/", "/data/a/b", true],
    ["/data", "/data/*", true],
    ["/data", "/data/../etc", false],
    ["/data", "/database", false],
    ["/data", "/data*", false],
    ["/data/*", "/data", true],
    ["/data/*", "/data*", false],
    ["/da*", "/data/a", true],
    ["/data/*.js", "/data/a.ts", true],
    ["data", "data/a", true],
    [".", "data/../data/a", true],
    ["data", "../data", false],
    ["data", resolve("data"), false],
    ["/", "data", false],
  ])("of %s: %s (%s)", (place, asked, isHeld) => {
    for (const part of ["allowFsRead", "allowFsWrite"]) {
      const found = widening(
        { permissions: { [part]: [asked] } },
        { permissions: { [part]: ["/other", place] } },
      );
      expect(found === undefined, found).toBe(isHeld);
      const problem = `permissions.${part} asks for "${asked}", and the code that starts it has`;
      if (!isHeld) expect(found).toContain(problem);
    }
  });

  test.each([
    "--allow-worker",
    "--no-warnings --allow_fs_read=*",
    String.raw`"--al\low-addons"`,
    "--no-permission",
    "--experimental-permission",
  ])("variables that give some do not: %s", (options) => {
    const own = { env: { Node_Options: options } };
    expect(widening(own, { permissions: {} })).toContain("env.NODE_OPTIONS");
    expect(widening(own, { env: {} })).toBeUndefined();
    expect(widening({ env: { NODE_OPTIONS: "--no-warnings" } }, { permissions: {} })).toBe(
      undefined,
    );
  });
});

describe("the code cache of hosts", () => {
  test("is made for this user alone", async () => {
    const { NODE_COMPILE_CACHE: cache } = await envOf();
    expect(cache).toBe(join(folder, name));
    expect(lstatSync(join(folder, name)).mode & 0o777).toBe(0o700);
    expect((await envOf())["NODE_COMPILE_CACHE"]).toBe(cache);
    expect(warning).not.toHaveBeenCalled();
  });

  test("is made private again where Node has made it for others to read", async () => {
    mkdirSync(join(folder, name));
    chmodSync(join(folder, name), 0o755);
    expect((await envOf())["NODE_COMPILE_CACHE"]).toBe(join(folder, name));
    expect(lstatSync(join(folder, name)).mode & 0o777).toBe(0o700);
    expect(warning).not.toHaveBeenCalled();
  });

  const others: Readonly<Record<string, (path: string) => void>> = {
    "that others may write to": (path) => {
      mkdirSync(path);
      chmodSync(path, 0o777);
    },
    "that leads elsewhere": (path) => {
      mkdirSync(join(folder, "elsewhere"), { mode: 0o700 });
      symlinkSync(join(folder, "elsewhere"), path);
    },
    "that is a file": (path) => writeFileSync(path, ""),
  };
  test.each(Object.keys(others))("is not one %s, which is warned of once", async (what) => {
    others[what]?.(join(folder, name));
    expect((await envOf())["NODE_COMPILE_CACHE"]).toBeUndefined();
    await envOf();
    expect(warning).toHaveBeenCalledTimes(1);
    expect(warning.mock.calls[0]?.[0]).toContain(join(folder, name));
  });

  test("is where the user says, in the driver or for the host", async () => {
    expect((await envOf({ NODE_COMPILE_CACHE: "/mine" }))["NODE_COMPILE_CACHE"]).toBe("/mine");
    vi.stubEnv("NODE_COMPILE_CACHE", "/ours");
    expect((await envOf())["NODE_COMPILE_CACHE"]).toBe("/ours");
  });
});
