/** Room for what other runtimes send, where some of them send no more. */
import { expect, test } from "vitest";
import { Pulls } from "../src/caller/objects/pulls.ts";
import type { Room } from "../src/rpc/session/part-transfers.ts";

/** What `take` gave, when it did. */
function asked(pulls: Pulls, peer: object, bytes: number): Promise<Room> {
  return new Promise((resolve) => pulls.take(peer, bytes, resolve));
}

const begins = async (room: Promise<Room>): Promise<boolean> => {
  const no = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
  return (await Promise.race([room, no])) !== undefined;
};

const forEver = 2 ** 30;

test("values begin in the order of asking, as long as there is room", async () => {
  const pulls = new Pulls(10, forEver);
  const [first, second, third] = [6, 4, 1].map((bytes) => asked(pulls, {}, bytes));
  const room = await first;
  await second;
  expect(await begins(third as Promise<Room>)).toBe(false);
  room?.end();
  await third;
});

test("one that is more than there is room for begins alone", async () => {
  const pulls = new Pulls(10, forEver);
  const small = await asked(pulls, {}, 1);
  const big = asked(pulls, {}, 99);
  expect(await begins(big)).toBe(false);
  small.end();
  const room = await big;
  const next = asked(pulls, {}, 1);
  expect(await begins(next)).toBe(false);
  room.end();
  await next;
});

test("a peer of which nothing comes gives its room, and of what else it is asked for nothing begins", async () => {
  const pulls = new Pulls(10, 5);
  const stalled = {};
  const room = await asked(pulls, stalled, 10);
  const more = [asked(pulls, stalled, 6), asked(pulls, stalled, 6)];
  const well = await asked(pulls, {}, 10);
  // It has room, and only that peer's values wait for it.
  well.end();
  expect(await begins(more[0] as Promise<Room>)).toBe(false);
  room.came();
  room.end();
  const first = await (more[0] as Promise<Room>);
  first.end();
  await more[1];
});

test("a stalled peer that goes on takes its room again", async () => {
  const pulls = new Pulls(10, 5);
  const room = await asked(pulls, {}, 10);
  const well = await asked(pulls, {}, 10);
  room.came();
  well.end();
  const next = asked(pulls, {}, 1);
  expect(await begins(next)).toBe(false);
  room.end();
  await next;
});

test("a peer that is lost while it is stalled ends all that waits for it", async () => {
  const pulls = new Pulls(10, 5);
  const stalled = {};
  const room = await asked(pulls, stalled, 10);
  const count = 100_000;
  let ended = 0;
  for (let index = 0; index < count; index++) {
    pulls.take(stalled, 10, (late) => {
      ended += 1;
      late.end();
    });
  }
  const well = await asked(pulls, {}, 10);
  expect(ended).toBe(0);
  room.end();
  well.end();
  expect(ended).toBe(count);
});
