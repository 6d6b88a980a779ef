/** `rayling get`, `kill`, `list --columns` and `status --watch` on a real driver. */
import { beforeEach, describe, expect, test } from "vitest";
import { inProcess, shown, start } from "./command.ts";
import { driver, json, ownDirectory, sharedDriver } from "./driver.ts";
import { eventually } from "../../../test/fixtures/eventually.ts";

beforeEach(() => ownDirectory());
const bare = { isolation: "shared" } as const;

interface Actor {
  readonly actorId: string;
  readonly className: string;
  readonly state: string;
}

async function actors(): Promise<readonly Actor[]> {
  const { rows } = (await json("list", "actors")) as { readonly rows: readonly Actor[] };
  return rows;
}

async function idOf(className: string): Promise<string> {
  return (await actors()).find((one) => one.className === className)?.actorId ?? "";
}

describe("what does nothing to it", () => {
  const shared = sharedDriver();

  test("get shows every column of what has that id, whatever it is", async () => {
    const id = await idOf("Grader");
    expect(await json("get", id)).toMatchObject({ actors: [{ actorId: id, className: "Grader" }] });
    const { stdout } = await inProcess("get", id);
    expect(stdout).toMatch(/^actors\n/);
    expect(stdout).toMatch(/^ {2}className +Grader$/m);
    expect(stdout).toMatch(/^ {2}numRestarts +0$/m);
    const { rows } = (await json("list", "nodes")) as {
      readonly rows: readonly { readonly nodeId: string }[];
    };
    const [node] = rows;
    expect(await json("get", node?.nodeId ?? "")).toMatchObject({ nodes: [{ isHeadNode: true }] });
    const none = await inProcess("get", "actor-none");
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toContain("nothing with the id or name actor-none");
  });

  test("list --columns has these columns in that order, in tables and as json; sizes have units", async () => {
    const session = shared();
    const id = await idOf("Grader");
    const table = await inProcess("list", "actors", "--columns", "state,class_name,numRestarts");
    expect(table.stdout).toMatch(/^state +className +numRestarts\n/);
    expect(table.stdout).toMatch(/^ALIVE +Grader +0$/m);
    const filter = ["--filter", `actorId=${id}`];
    expect(await json("list", "actors", "--columns", "className,actorId", ...filter)).toMatchObject(
      {
        rows: [{ className: "Grader", actorId: id }],
      },
    );
    const wrong = await inProcess("list", "actors", "--columns", "statte");
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toMatch(/^rayling: --columns: statte is none of .*; is it state\?$/m);
    expect((await inProcess("list", "actors", "--columns", "a,,b")).code).toBe(2);
    await session.ask("list", "Objects", {});
    const objects = await inProcess("list", "objects", "--columns", "name,objectSize");
    expect(objects.stdout).toMatch(/^\S+ +300\.\d kB$/m);
  });

  test("status --watch shows it again until Ctrl-C, a line of JSON for each look", async () => {
    const session = shared();
    const watching = start("status", "--watch", "0.1", "--format", "json");
    await shown(watching, /^\{.*\}\n\{.*\}\n/);
    watching.child.kill("SIGINT");
    const { code, stdout, stderr } = await watching.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const looks = stdout.trimEnd().split("\n");
    for (const look of looks) {
      expect(JSON.parse(look)).toMatchObject({ driver: { pid: session.pid } });
    }
    const wrong = await inProcess("status", "--watch", "0");
    expect(wrong.code).toBe(2);
  });
});

test("kill ends an actor for good, and says who asked for it; a dead one is refused", async () => {
  await driver(bare);
  const id = await idOf("Grader");
  expect(await inProcess("kill", id)).toMatchObject({
    code: 0,
    stdout: `the actor ${id} (Grader) was killed\n`,
  });
  await eventually(async () => {
    const { actors: rows } = (await json("get", id)) as { readonly actors: readonly unknown[] };
    expect(rows).toMatchObject([
      {
        state: "DEAD",
        deathCause: expect.stringContaining("it was killed from the command line") as string,
      },
    ]);
  });
  const byName = await inProcess("kill", "waiting");
  expect(byName.stdout).toMatch(/^the actor actor-\w+ \(Idle\) was killed$/m);
  const again = await inProcess("kill", id);
  expect(again).toMatchObject({ code: 1, stdout: "" });
  expect(again.stderr).toContain(`the actor ${id} (Grader) is dead`);
  expect((await inProcess("kill", "nobody")).stderr).toContain("no actor with the id or name");
});

test("status --watch ends with the driver", async () => {
  const session = await driver(bare);
  const watching = start("status", "--watch", "0.1");
  await shown(watching, /running for/);
  session.child.kill("SIGKILL");
  expect(await watching.ended).toMatchObject({ code: 0 });
});
