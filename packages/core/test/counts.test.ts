/** What a borrower tells an owner of references, as the owner hears it: a count that is lowered never before one that was raised. */
import { MessageChannel } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { ObjectExchange } from "../src/caller/objects/object-exchange.ts";
import { Sessions } from "../src/caller/objects/sessions.ts";
import { Session } from "../src/rpc/session/session.ts";
import { Store } from "../src/store/store.ts";
import type { Channel } from "../src/transport/channel.ts";
import { threadChannel } from "../src/transport/thread.ts";
import { never, receiverOf } from "./fixtures/owner.ts";

const cut = { kind: "unreachable", message: "the cable was cut" } as const;
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A runtime that holds objects of an owner, to whom it is connected when the test says so, and what the owner hears on each way. */
function borrower() {
  const heard: string[] = [];
  const dials: ((channel: Channel) => void)[] = [];
  const sessions: Sessions = new Sessions({
    id: "me",
    directory: {
      connect: () => new Promise((resolve) => dials.push(resolve)),
      death: never,
    },
    get objects() {
      return { store };
    },
    get exchange() {
      return exchange;
    },
  } as unknown as ConstructorParameters<typeof Sessions>[0]);
  const exchange = new ObjectExchange({
    id: "me",
    sessions: () => sessions,
  } as unknown as ConstructorParameters<typeof ObjectExchange>[0]);
  const store: Store = new Store("me", exchange);
  /** The borrower's end of a new way. */
  const way = (name: string): Channel => {
    const { port1, port2 } = new MessageChannel();
    const owner = new Session("me", threadChannel(port2, never), {
      ...receiverOf(new Map()),
      onReference: (objectId, holder, change) =>
        void heard.push(`${name}: ${objectId} ${holder} ${change > 0 ? "+" : ""}${change}`),
    });
    ends.push(() => owner.close(cut));
    return threadChannel(port1, never);
  };
  return { heard, dials, sessions, exchange, store, way };
}

test("a reference is claimed before what was on its way is given up, also over a connection that is being made", async () => {
  const { heard, dials, store, way } = borrower();
  store.importReference("owner", 7, "an object");
  dials[0]?.(way("first"));
  await expect.poll(() => heard.length).toBe(2);
  expect(heard.map((line) => line.split(" ").at(-1))).toEqual(["+1", "-1"]);
  expect(heard[0]).toMatch(/^first: \S+ me \+1$/);
});

test("counts stay with a way as long as it lives, whatever other ways come", async () => {
  const { heard, sessions, exchange, way } = borrower();
  const first = sessions.add("owner", way("first"));
  sessions.add("owner", way("second"));
  exchange.changeReference("owner", "object", "me", 1);
  await expect.poll(() => heard).toEqual(["first: object me +1"]);
  first.close(cut);
  await first.closed;
  exchange.changeReference("owner", "object", "me", 1);
  await expect.poll(() => heard.length).toBe(2);
  sessions.add("owner", way("third"));
  exchange.changeReference("owner", "object", "me", -1);
  await expect
    .poll(() => heard)
    .toEqual(["first: object me +1", "second: object me +1", "second: object me -1"]);
});
