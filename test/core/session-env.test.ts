/** `init({ runtimeEnv })`: what all threads and processes of a session have, unless an actor or a task says otherwise. */
import * as ray from "@rayling/core";
import { afterEach, expect, test, vi } from "vitest";
import { Permitted } from "../fixtures/permitted.ts";
import { Resident, variableOf } from "../fixtures/processes.ts";

afterEach(async () => {
  vi.unstubAllEnvs();
  await ray.shutdown();
});

const session = { env: { SESSION: "all", BOTH: "session", TOLD: "session, ${TOLD}" } };
const own = { env: { OWN: "one", BOTH: "own", TOLD: "own, ${TOLD}" } };

test.each(["thread", "process"] as const)(
  "a %s has the variables of the session, and its own over them",
  async (isolation) => {
    vi.stubEnv("TOLD", "driver");
    await ray.init({ numCpus: 4, prewarm: 1, runtimeEnv: session });
    const plain = Resident.options({ isolation }).remote();
    const special = Resident.options({ isolation, runtimeEnv: own }).remote();
    const read = (actor: typeof plain): Promise<unknown> =>
      ray.get(["SESSION", "BOTH", "OWN", "TOLD"].map((name) => actor.environment.remote(name)));
    expect(await read(plain)).toEqual(["all", "session", undefined, "session, driver"]);
    expect(await read(special)).toEqual(["all", "own", "one", "own, session, driver"]);
    const task = variableOf.options({ isolation });
    expect(await ray.get(task.remote("BOTH"))).toBe("session");
    expect(await ray.get(task.options({ runtimeEnv: own }).remote("BOTH"))).toBe("own");
  },
);

test.each(["thread", "process", "shared"] as const)(
  "tokens of the driver are not in the environment of a %s, nor of what it starts",
  async (isolation) => {
    vi.stubEnv("RAYLING_METRICS_TOKEN", "a-secret");
    vi.stubEnv("RAYLING_NODES", "");
    await ray.init({ numCpus: 2, prewarm: 1 });
    const actor = Resident.options({ isolation }).remote();
    for (const name of ["RAYLING_METRICS_TOKEN", "RAYLING_NODES"]) {
      expect(await ray.get(actor.environment.remote(name)), name).toBeUndefined();
    }
    vi.unstubAllEnvs();
  },
);

test("actors that share a thread have those of the session", async () => {
  await ray.init({ numCpus: 2, prewarm: 0, runtimeEnv: session });
  const shared = Resident.options({ isolation: "shared" }).remote();
  expect(await ray.get(shared.environment.remote("SESSION"))).toBe("all");
});

test("other parts are those of the actor, where it has some", async () => {
  await ray.init({ numCpus: 2, prewarm: 0, runtimeEnv: { execArgv: ["--stack-trace-limit=7"] } });
  const plain = Permitted.options({ isolation: "process" }).remote();
  expect(await ray.get(plain.flags.remote())).toContain("--stack-trace-limit=7");
  const runtimeEnv = { execArgv: ["--stack-trace-limit=9"] };
  const special = Permitted.options({ isolation: "process", runtimeEnv }).remote();
  const flags = await ray.get(special.flags.remote());
  expect(flags).toContain("--stack-trace-limit=9");
  expect(flags).not.toContain("--stack-trace-limit=7");
});

test("the code for other machines changes nothing on this one", async () => {
  await ray.init({ numCpus: 2, prewarm: 1, runtimeEnv: { workingDir: true, excludes: ["*"] } });
  const actor = Resident.options({ runtimeEnv: { workingDir: "test" } }).remote();
  expect(await ray.get(actor.echo.remote(1))).toBe(1);
});

test.each<[object, string]>([
  [{ permissions: {} }, "cannot hold permissions"],
  [{ workingDir: "./not/there" }, `must be an existing folder, not "./not/there"`],
  [{ env: 1 }, "env must map names to texts"],
])("%j is refused at once, and nothing is started", async (runtimeEnv, message) => {
  await expect(ray.init({ runtimeEnv })).rejects.toThrow(message);
  expect(ray.isInitialized()).toBe(false);
});

test("a folder that RAYLING_WORKING_DIR names is looked for as any other", async () => {
  vi.stubEnv("RAYLING_WORKING_DIR", "./not/there");
  try {
    await expect(ray.init()).rejects.toThrow("must be an existing folder");
    expect(ray.isInitialized()).toBe(false);
    // What the script says is stronger.
    await ray.init({ runtimeEnv: { workingDir: true } });
  } finally {
    vi.unstubAllEnvs();
  }
});

test("settings that no thread can have end those that need one, and the session goes on", async () => {
  await ray.init({ numCpus: 2, prewarm: 1, runtimeEnv: { execArgv: ["--stack-trace-limit=7"] } });
  const thread = Resident.options({ isolation: "thread" }).remote();
  await expect(ray.get(thread.pid.remote())).rejects.toThrow(ray.RuntimeEnvSetupError);
  const shared = Resident.options({ isolation: "shared" }).remote();
  await expect(ray.get(shared.pid.remote())).rejects.toThrow(ray.RuntimeEnvSetupError);
  const task = variableOf.options({ isolation: "thread" });
  await expect(ray.get(task.remote("HOME"))).rejects.toThrow(ray.RuntimeEnvSetupError);
  const child = Resident.options({ isolation: "process" }).remote();
  expect(await ray.get(child.echo.remote(1))).toBe(1);
});
