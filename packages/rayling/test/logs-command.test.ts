/** `rayling logs`: what was written, whose it is, and what comes until the driver ends. */
import { once } from "node:events";
import { beforeEach, describe, expect, test } from "vitest";
import { inProcess, start, startShell } from "./command.ts";
import { driver, type Driver, json, killed, ownDirectory } from "./driver.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeEach(async () => void (await ownDirectory()));

/** A command that follows, when it has shown what there was. */
async function follow(...flags: readonly string[]): Promise<ReturnType<typeof start>> {
  const started = start("logs", "--follow", ...flags);
  await once(started.child.stdout as NodeJS.ReadableStream, "data");
  return started;
}

/** Writes, and reads it back where it is shown. */
async function says(
  session: Driver,
  command: ReturnType<typeof start>,
  text: string,
): Promise<void> {
  const shown = new Promise<void>((resolve) => {
    command.child.stdout?.on("data", (chunk: string) => chunk.includes(text) && resolve());
  });
  await session.ask("say", text);
  await shown;
}

describe("what was written", () => {
  test("is shown as the driver shows it, all of it or what is asked for, and kept up to 10,000 lines", async () => {
    const session = await driver();
    const { stdout: all } = await inProcess("logs");
    expect(all).toMatch(
      /^\(Grader actor-\w{6} host-\w{6}\) hello\n\(sayTask host-\w{6}\) from a task\n$/,
    );
    await session.ask("say", "again");
    const { rows } = (await json("list", "actors", "--filter", "className=Grader")) as {
      readonly rows: readonly { readonly actorId: string; readonly workerId: string }[];
    };
    const { actorId = "", workerId = "" } = rows[0] ?? {};
    const texts = async (...flags: readonly string[]): Promise<readonly string[]> => {
      const { code, stdout } = await inProcess("logs", ...flags);
      expect(code).toBe(0);
      return stdout.split("\n").flatMap((line) => line.split(") ")[1] ?? []);
    };
    for (const flags of [
      ["--actor", "Grader"],
      ["--actor", actorId],
      ["--actor", "the \u001b[31mgrader"],
      ["--host", workerId.slice(0, 12)],
    ]) {
      expect(await texts(...flags), flags.join(" ")).toEqual(["hello", "again"]);
    }
    expect(await texts("--task", "sayTask")).toEqual(["from a task"]);
    expect(await texts("--actor", "Nobody")).toEqual([]);
    expect(await texts("--tail", "2")).toEqual(["from a task", "again"]);
    expect(await texts("--tail", "1", "--actor", "Grader")).toEqual(["again"]);
    expect(await texts("--tail", "0")).toEqual([]);
    await session.ask("sayMuch", 10_100);
    const lines = (await inProcess("logs")).stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(10_000);
    expect(lines.at(-1)).toMatch(/ line 10099$/);
  });

  test("cannot be shown where the driver does not see it", async () => {
    await driver({ logToDriver: false, isolation: "shared" });
    const { code, stderr } = await inProcess("logs");
    expect(stderr).toContain("does not collect the output of its hosts (logToDriver)");
    expect(code).toBe(1);
  });
});

describe("--follow", () => {
  test("goes on with what is written, and ends with the session, in order", async () => {
    const session = await driver();
    const command = await follow();
    await says(session, command, "first");
    await says(session, command, "second");
    await session.ask("sayMuch", 2500);
    await session.ask("shutdown");
    const { code, stdout, stderr } = await command.ended;
    const texts = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(") ")[1]);
    expect(texts.slice(0, 4)).toEqual(["hello", "from a task", "first", "second"]);
    expect(texts.slice(4)).toEqual(Array.from({ length: 2500 }, (_, line) => `line ${line}`));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test.each(sized({ gate: ["kill"], full: ["exit", "kill", "stop"] }))(
    "ends with the process (%s)",
    async (how) => {
      const session = await driver();
      const command = await follow("--actor", "Grader");
      if (how === "exit") await session.ask("exit");
      else if (how === "kill") await killed(session);
      else await inProcess("stop");
      expect(await command.ended).toMatchObject({ code: 0, stderr: "" });
    },
  );

  test("ends when nobody reads it any more, and the driver goes on", async () => {
    const session = await driver();
    const command = startShell('"$@" logs --follow | head -n 1');
    // The first line after the reader has gone finds that it has.
    while (command.child.exitCode === null) await session.ask("say", "to nobody");
    expect((await command.ended).stdout).toMatch(/hello\n$/);
    expect(await json("status")).toMatchObject({ actors: { ALIVE: 1 } });
  });
});
