/** Two hosts that cannot reach each other any more, and live: whoever knows of their deaths has none to tell. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import * as ray from "@rayling/core";
import { Question, type QuestionLink } from "../src/caller/objects/ask-owner.ts";
import type { Encoded } from "../src/protocol/codec.ts";
import type { Pending } from "../src/protocol/message.ts";
import type { Fetch } from "../src/rpc/session/requests.ts";
import type { ObjectEntry } from "../src/store/object-entry.ts";
import { Store } from "../src/store/store.ts";
import { Neighbour } from "./fixtures/neighbour.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

beforeAll(() => ray.init({ numCpus: 8, prewarm: 0, isolation: "process" }));
afterAll(() => ray.shutdown());

test.concurrent("a call that was under way fails as one to somebody who cannot be reached, and the next one finds a new way", async () => {
  const [left, right] = [Neighbour.remote(), Neighbour.remote()];
  const told = await ray.get(left.loses.remote(right, 0));
  expect(told).toMatch(/^ActorUnavailableError: .*the cable was cut/);
  expect(await ray.get(left.ask.remote(right))).toBe(4);
});

test.concurrent("a call that may be tried again goes over the new way, to the same life", async () => {
  const [left, right] = [Neighbour.remote(), Neighbour.remote()];
  expect(await ray.get(left.loses.remote(right, 1))).toBe(4);
});

// As with the objects below, a way that is lost is given up after five seconds.
test.concurrent("a call whose last try finds no new way was sent by the one before, and says so", async () => {
  const [left, right] = [Neighbour.remote(), Neighbour.remote()];
  expect(await ray.get(left.ask.remote(right))).toBe(1);
  await shutDoors(left, right);
  expect(await ray.get(left.loses.remote(right, 1, "channel-broken"))).toMatch(
    /^ActorUnavailableError: .* cannot be reached from here \(no connection to its host: .*\); the call may or may not have run$/,
  );
});

/** Neither finds a new way to the other, though both live. */
async function shutDoors(...two: [Dialler, Dialler]): Promise<void> {
  const ids = await ray.get(two.map((one) => one.hostId.remote()));
  await ray.get(two.map((one, index) => one.openDoorOf.remote(ids[1 - index] ?? "")));
  for (const line of readFileSync("/proc/net/unix", "utf8").split("\n")) {
    const [, , , flags, , , , path = ""] = line.trim().split(/\s+/);
    const isDoor = flags === "00010000" && ids.some((id) => path.endsWith(`/${id}`));
    if (!isDoor) continue;
    rmSync(path);
    mkdirSync(path);
  }
}

type Dialler = ray.ActorHandle<{ hostId(): string; openDoorOf(hostId: string): Promise<void> }>;

// A way that is lost is given up after five seconds: the cases wait for that side by side.
describe.concurrent("objects", () => {
  test.each(["lose", "replaceWay"] as const)(
    "that a peer holds are kept for it when the way to it is lost, and read over a new one (%s)",
    async (lose) => {
      const [left, right] = [Neighbour.remote(), Neighbour.remote()];
      await ray.get(left.lend.remote(right, "kept"));
      await ray.get(left[lose].remote(await ray.get(right.hostId.remote())));
      await ray.get(left.collect.remote());
      expect(await ray.get(right.read.remote())).toBe("kept");
    },
  );

  test("are let go when the directory says that their holder is dead, however long the way to it was lost before", async () => {
    const [left, right] = [Neighbour.remote(), Neighbour.remote()];
    await ray.get(left.lend.remote(right, "short life"));
    await ray.get(left.lose.remote(await ray.get(right.hostId.remote())));
    await ray.get(left.collect.remote());
    expect(await ray.get(left.exported.remote())).toBe(1);
    await expect(ray.get(right.exit.remote())).rejects.toThrow(ray.ActorDiedError);
    await expect.poll(() => ray.get(left.exported.remote())).toBe(0);
  });

  test("that are waited for when the way to their owner is lost are asked for again", async () => {
    const [left, right, maker] = [Neighbour.remote(), Neighbour.remote(), Neighbour.remote()];
    await ray.get(left.lendLater.remote(right, maker));
    const reading = right.read.remote();
    const rightId = await ray.get(right.hostId.options({ concurrencyGroup: "beside" }).remote());
    for (let cut = 0; cut < 2; cut++) await ray.get(left.lose.remote(rightId));
    await ray.get(maker.answer.options({ concurrencyGroup: "beside" }).remote());
    expect(await ray.get(reading)).toBe(2);
  });

  test("of an owner that lives and cannot be reached fail by themselves, and those of one that dies meanwhile with it", async () => {
    const [left, right, maker] = [Neighbour.remote(), Neighbour.remote(), Neighbour.remote()];
    await ray.get(left.lendLater.remote(right, maker));
    const rightId = await ray.get(right.hostId.remote());
    await shutDoors(left, right);
    const reading = right.read.remote();
    await ray.get(right.hostId.options({ concurrencyGroup: "beside" }).remote());
    await ray.get(left.lose.remote(rightId));
    await expect(ray.get(reading)).rejects.toThrow(ray.ObjectFetchTimedOutError);
    await ray.get(left.count.remote());

    const [other, another, late] = [Neighbour.remote(), Neighbour.remote(), Neighbour.remote()];
    await ray.get(other.lendLater.remote(another, late));
    const otherId = await ray.get(another.hostId.remote());
    await shutDoors(other, another);
    const asking = another.read.remote();
    await ray.get(another.hostId.options({ concurrencyGroup: "beside" }).remote());
    await ray.get(other.lose.remote(otherId));
    await expect(ray.get(other.exit.remote())).rejects.toThrow(ray.ActorDiedError);
    await expect(ray.get(asking)).rejects.toThrow(ray.OwnerDiedError);
  });
});

describe("a borrower that loses the way to an owner", () => {
  /** What it tells the owner of each object when it has dropped all. */
  async function told(
    use: (store: Store, take: (sequence: number) => void) => void,
  ): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    const store = new Store("me", {
      fetch: () => undefined,
      changeReference: (_owner, objectId, holder, change) => {
        const key = `${objectId} ${holder}`;
        counts.set(key, (counts.get(key) ?? 0) + change);
      },
    });
    use(store, (sequence) => {
      const entry = store.importReference("owner", sequence, "put");
      if (sequence > 0) store.exportReference(entry, "another");
    });
    const collected = (): number => {
      globalThis.gc?.();
      return store.borrowedCount;
    };
    await expect.poll(collected).toBe(0);
    return counts;
  }

  test("does not release what it has passed on before, as the owner may not know for whom", async () => {
    const counts = await told((store, take) => {
      for (let sequence = 0; sequence < 2; sequence++) take(sequence);
      store.wayLost("owner");
      take(2);
    });
    expect(counts.get("owner:0 me")).toBe(0);
    expect(counts.get("owner:1 me")).toBe(1);
    expect(counts.get("owner:2 me")).toBe(0);
  });
});

test("a question whose second way held for long is asked again when that is lost, too", async () => {
  const clock = vi.spyOn(process, "hrtime").mockReturnValue([1, 0]);
  onTestFinished(() => clock.mockRestore());
  const asked: Pending[] = [];
  const session = {
    isOpen: true,
    requests: { fetch: ({ pending }: Fetch) => asked.push(pending) },
  };
  const link = { with: async () => session, whenDead: () => () => undefined };
  const failures: Error[] = [];
  const answer = new Promise<void>((resolve) => {
    const question = new Question(
      link as unknown as QuestionLink,
      { id: "object", owner: "owner" } as ObjectEntry,
      {
        whole: false,
        isWanted: () => true,
        resolve: () => resolve(),
        reject: () => undefined,
        refuse: () => undefined,
        fail: (error) => failures.push(error),
      },
      500,
    );
    void question.ask();
  });
  const cut = { kind: "unreachable", message: "the cable was cut" } as const;
  await expect.poll(() => asked.length).toBe(1);
  asked[0]?.lose(cut);
  clock.mockReturnValue([1, 20e6]);
  await expect.poll(() => asked.length).toBe(2);
  // An hour later.
  clock.mockReturnValue([3601, 0]);
  asked[1]?.lose(cut);
  await expect.poll(() => asked.length + failures.length).toBe(3);
  asked[2]?.settle({ kind: "result", id: 0, value: {} as Encoded });
  await answer;
  expect(failures).toEqual([]);
});
