import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "rayling";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { drainsAtExit, isOverAgent } from "../fixtures/isolation.ts";
import { markOf } from "../fixtures/objects.ts";
import { inFull } from "../fixtures/suite.ts";
import { addOne, Maker, makeNoted, Press, Shelf } from "../fixtures/makers.ts";

const MiB = 1024 * 1024;

let root: string;
let notes: string;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "located-test-"));
  notes = join(root, "notes");
  await ray.init({ numCpus: 2, prewarm: 0 });
});

afterEach(async () => {
  await ray.shutdown();
  rmSync(root, { recursive: true, force: true });
});

interface Note {
  readonly mark: number;
  readonly pid: number;
}

function noted(): Note[] {
  return readFileSync(notes, "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(" ").map(Number))
    .map(([mark, pid]) => ({ mark: mark as number, pid: pid as number }));
}

/** Ends the processes that ran tasks, and waits until the driver knows. */
async function endWorkers(): Promise<void> {
  const pids = new Set(noted().map(({ pid }) => pid));
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      // One that was ended before is no longer there.
      if ((error as { code?: string }).code !== "ESRCH") throw error;
    }
  }
}

async function rejection(ref: ray.ObjectRef): Promise<Error> {
  try {
    await ray.get(ref);
  } catch (error) {
    return error as Error;
  }
  return expect.fail("it did not fail");
}

async function made<Ref extends ray.ObjectRef>(ref: Ref): Promise<Ref> {
  await ray.wait([ref]);
  return ref;
}

describe("a big result of a process", () => {
  test("is read by its owner, again and again", async () => {
    const maker = Maker.remote();
    const ref = maker.make.remote(4, MiB);
    for (let round = 0; round < 3; round++) expect(markOf(await ray.get(ref))).toBe(4);
    expect(markOf(await ray.get(makeNoted.remote(notes, 5, MiB)))).toBe(5);
  });

  test("is an argument of calls to other processes, in order with the calls around it, and to the one that made it", async () => {
    const [maker, reader] = [Maker.remote(), Maker.remote()];
    const [first, second] = [maker.make.remote(1, MiB), maker.make.remote(2, 5 * MiB)];
    expect(await ray.get(reader.readBoth.remote(first, second))).toEqual([1, 2]);
    expect(await ray.get(maker.readBoth.remote(first, second))).toEqual([1, 2]);
    const shelf = Shelf.remote();
    void shelf.keep.remote(first);
    const before = shelf.kept.remote();
    void shelf.keep.remote(second);
    const after = shelf.kept.remote();
    expect(await ray.get([before, after])).toEqual([1, 2]);
  });

  test("is read by who was given the ref inside a value", async () => {
    const [maker, reader] = [Maker.remote(), Maker.remote()];
    const refs = [1, 2, 3].map((mark) => maker.make.remote(mark, MiB));
    expect(await ray.get(reader.readInside.remote({ refs }))).toEqual([1, 2, 3]);
    expect(await ray.get(maker.readInside.remote({ refs }))).toEqual([1, 2, 3]);
    expect((await ray.get(refs)).map(markOf)).toEqual([1, 2, 3]);
  });

  test("is read by a thread, and a thread's by a process", async () => {
    const thread = Maker.options({ isolation: "thread" }).remote();
    const maker = Maker.remote();
    expect(await ray.get(thread.read.remote(maker.make.remote(1, MiB)))).toBe(1);
    expect(await ray.get(maker.read.remote(thread.make.remote(2, MiB)))).toBe(2);
  });

  test("that was read is the owner's: it outlives its process", async () => {
    const maker = Maker.remote();
    const ref = maker.make.remote(4, MiB);
    expect(markOf(await ray.get(ref))).toBe(4);
    await ray.kill(maker);
    expect(markOf(await ray.get(ref))).toBe(4);
  });
});

describe("a call whose argument does not come", () => {
  /** It is kept by a process that does not go on, and its reader has a way there. */
  async function stuck(): Promise<{
    readonly shelf: ReturnType<typeof Shelf.remote>;
    readonly value: ray.ObjectRef<Float64Array>;
  }> {
    const [maker, shelf] = [Maker.remote(), Shelf.remote()];
    await ray.get(shelf.keep.remote(maker.make.remote(1, MiB)));
    const value = await made(maker.make.remote(2, MiB));
    process.kill(await ray.get(maker.pid.remote()), "SIGSTOP");
    return { shelf, value };
  }

  test("holds up its own concurrency group, and no other", async () => {
    const { shelf, value } = await stuck();
    const held = shelf.keep.options({ concurrencyGroup: "slow" }).remote(value);
    const behind = shelf.kept.options({ concurrencyGroup: "slow" }).remote();
    const others = Array.from({ length: 5 }, () => shelf.kept.remote());
    expect(await ray.get(others)).toEqual([1, 1, 1, 1, 1]);
    expect(await ray.wait([held, behind], { timeoutMs: 0 })).toMatchObject({ ready: [] });
  });

  test("is cancelled at once, and those behind it go on", async () => {
    const { shelf, value } = await stuck();
    const held = shelf.keep.remote(value);
    const behind = shelf.kept.remote();
    ray.cancel(held);
    expect(await rejection(held)).toBeInstanceOf(ray.TaskCancelledError);
    expect(await ray.get(behind)).toBe(1);
    expect(await ray.get(shelf.kept.remote())).toBe(1);
  });
});

describe("what a process has made is handed over", () => {
  /** Its owner and an actor of another process hold it when its own ends by `end`. */
  async function readAfter(
    bytes: number,
    end: (maker: ReturnType<typeof Maker.remote>) => ray.ObjectRef,
  ) {
    const [maker, reader] = [Maker.remote(), Maker.remote()];
    const ref = maker.make.remote(1, bytes);
    const inside = reader.readInside.remote({ refs: [ref] });
    await ray.wait([ref, inside], { numReturns: 2 });
    await expect(ray.get(end(maker))).rejects.toThrow(ray.ActorDiedError);
    expect(markOf(await ray.get(ref))).toBe(1);
    expect(await ray.get(reader.read.remote(ref))).toBe(1);
  }

  test("when it ends in order", () => readAfter(20 * MiB, (maker) => maker.leave.remote()));

  test.runIf(drainsAtExit)("when its code ends it", () =>
    readAfter(MiB, (maker) => maker.exit.remote()),
  );
});

describe("when the process that kept a value is gone", () => {
  /** For what its owner decides by itself. */
  const byOwner = test.runIf(
    !isOverAgent || inFull("the owner decides alike for processes of an agent and its own ones"),
  );

  test("on one CPU too, however many have to be made again", async () => {
    await ray.shutdown();
    await ray.init({ numCpus: 1, prewarm: 0 });
    const first = await made(makeNoted.remote(notes, 1, MiB));
    const second = await made(addOne.remote(notes, first));
    await endWorkers();
    expect(markOf(await ray.get(addOne.remote(notes, addOne.remote(notes, second))))).toBe(4);
  });

  test("its task is run again, once, and the value is as it was", async () => {
    const ref = await made(makeNoted.remote(notes, 3, MiB));
    await endWorkers();
    expect(markOf(await ray.get(ref))).toBe(3);
    expect(noted().map(({ mark }) => mark)).toEqual([3, 3]);
  });

  test("so are the tasks that made its arguments, if those are gone too", async () => {
    let ref = makeNoted.remote(notes, 1, MiB);
    for (let step = 0; step < 3; step++) ref = addOne.remote(notes, ref);
    await made(ref);
    await endWorkers();
    globalThis.gc?.();
    expect(markOf(await ray.get(ref))).toBe(4);
    expect(noted().length).toBe(8);
  });

  test("a call that needs it as an argument gets it, wherever it runs", async () => {
    const reader = Maker.remote();
    await ray.get(reader.pid.remote());
    const ref = await made(makeNoted.remote(notes, 3, MiB));
    await endWorkers();
    const asArgument = reader.read.remote(ref);
    const inside = reader.readInside.remote({ refs: [ref] });
    expect(await ray.get([asArgument, inside])).toEqual([3, [3]]);
  });

  byOwner("one whose task may not run again is lost, and says why", async () => {
    const ref = await made(makeNoted.options({ maxRetries: 0 }).remote(notes, 3, MiB));
    await endWorkers();
    const error = await rejection(ref);
    expect(error).toBeInstanceOf(ray.ObjectReconstructionFailedError);
    expect(error).toBeInstanceOf(ray.ObjectLostError);
    expect(error).toMatchObject({
      code: "OBJECT_RECONSTRUCTION_FAILED",
      reason: "retries-disabled",
      objectId: ref.id,
    });
    expect(noted()).toHaveLength(1);
  });

  byOwner("a task is run again as often as maxRetries allows", async () => {
    const ref = await made(makeNoted.options({ maxRetries: 1 }).remote(notes, 3, MiB));
    const reader = Maker.remote();
    await endWorkers();
    // Made again on the way to the reader, and kept by the owner from then on.
    expect(await ray.get(reader.read.remote(ref))).toBe(3);
    await endWorkers();
    expect(markOf(await ray.get(ref))).toBe(3);
    expect(noted()).toHaveLength(2);
  });

  test("by the actor that is to read it, which runs one call at a time", async () => {
    const press = Press.options({ maxTaskRetries: 2 }).remote();
    const value = press.make.remote(5, MiB);
    await ray.wait([value]);
    await ray.get(press.end.options({ maxTaskRetries: 0 }).remote()).catch(() => undefined);
    expect(await ray.get([press.read.remote(value), press.read.remote(value)])).toEqual([5, 5]);
  });

  byOwner("an actor's result is lost without retries, and made again with them", async () => {
    const once = Maker.remote();
    const lost = await made(once.make.remote(1, MiB));
    await expect(ray.get(once.end.remote())).rejects.toThrow(ray.ActorDiedError);
    expect(await rejection(lost)).toMatchObject({ reason: "retries-disabled" });

    const again = Maker.options({ maxRestarts: 1, maxTaskRetries: 1 }).remote();
    const remade = await made(again.make.remote(2, MiB));
    const pid = await ray.get(again.pid.remote());
    process.kill(pid, "SIGKILL");
    expect(markOf(await ray.get(remade))).toBe(2);
    expect(await ray.get(again.pid.remote())).not.toBe(pid);
  });

  byOwner("what an actor put is lost with it: put is not run again", async () => {
    const maker = Maker.remote();
    const { ref } = await ray.get(maker.put.remote(1, MiB));
    await expect(ray.get(maker.exit.remote())).rejects.toThrow(ray.ActorDiedError);
    expect(await rejection(ref)).toBeInstanceOf(ray.OwnerDiedError);
  });

  byOwner("a task whose argument was put, used and dropped cannot be run again", async () => {
    const ref = await made(madeOfDroppedPut());
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
    await endWorkers();
    expect(await rejection(ref)).toMatchObject({ reason: "put" });
  });
});

describe("when the process that kept a value is gone, and others have copies", () => {
  const kill = async (actor: { readonly pid: { remote(): ray.ObjectRef<number> } }) => {
    process.kill(await ray.get(actor.pid.remote()), "SIGKILL");
  };

  test("a result of a task that is an argument somewhere is read from there, and no task runs", async () => {
    const ref = makeNoted.remote(notes, 3, MiB);
    const shelf = Shelf.remote();
    await ray.get(shelf.keep.remote(ref));
    await endWorkers();
    expect(markOf(await ray.get(ref))).toBe(3);
    expect(noted()).toHaveLength(1);
  });

  test("a result without retries is read by the ref of one who has read it, in a call, too", async () => {
    const thread = Maker.options({ isolation: "thread" }).remote();
    const [maker, reader] = [Maker.remote(), Maker.remote()];
    const refs = [maker.make.remote(1, MiB), maker.make.remote(2, 5 * MiB)];
    expect(await ray.get(reader.readInside.remote({ refs }))).toEqual([1, 2]);
    await kill(maker);
    expect(await ray.get(thread.read.remote(refs[0] as never))).toBe(1);
    expect(markOf(await ray.get(refs[1] as ray.ObjectRef<Float64Array>))).toBe(2);
    // The copies were there by these.
    expect(await ray.get(reader.refs.remote())).toBe(2);
  });

  test("one of the others may be gone, too", async () => {
    const [maker, first, second] = [Maker.remote(), Shelf.remote(), Shelf.remote()];
    const value = maker.make.remote(4, MiB);
    await ray.get([first.keep.remote(value), second.keep.remote(value)]);
    await kill(maker);
    await kill(first);
    expect(markOf(await ray.get(value))).toBe(4);
    expect(await ray.get(second.kept.remote())).toBe(4);
  });

  test("a holder that has none keeps nobody from the loss", async () => {
    const [maker, second] = [Maker.remote(), Shelf.remote()];
    const value = await made(maker.make.remote(4, MiB));
    const given = await ray.get(second.given.remote({ ref: value }));
    await kill(maker);
    const error = await rejection(value);
    expect(error).toMatchObject({ reason: "retries-disabled" });
    expect(error.message).toContain("; nobody else that was given it gave a copy (asked: 1)");
    expect(await rejection(given.ref)).toMatchObject({ reason: "retries-disabled" });
  });
});

function madeOfDroppedPut(): ray.ObjectRef<Float64Array> {
  return addOne.remote(notes, ray.put(new Float64Array(MiB / 8)));
}
