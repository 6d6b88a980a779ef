/** A peer that is known, and has more under way or more kept here than it may: it loses its connection, which says why. */
import { MessageChannel } from "node:worker_threads";
import { afterEach, describe, expect, test } from "vitest";
import { body, messages, pack } from "../../../test/fixtures/wire.ts";
import type { ObjectExchange } from "../src/caller/objects/object-exchange.ts";
import type { Objects } from "../src/caller/objects/objects.ts";
import { Pulls } from "../src/caller/objects/pulls.ts";
import { Sessions } from "../src/caller/objects/sessions.ts";
import type { References } from "../src/caller/references.ts";
import type { Values } from "../src/caller/values.ts";
import { BatchReader } from "../src/protocol/frames/batch-reader.ts";
import { Ledger } from "../src/rpc/session/ledger.ts";
import type { CallMessage } from "../src/protocol/message.ts";
import { Session, type SessionReceiver } from "../src/rpc/session/session.ts";
import type { Directory } from "../src/rpc/directory.ts";
import { Store } from "../src/store/store.ts";
import type { Channel } from "../src/transport/channel.ts";
import { threadChannel } from "../src/transport/thread.ts";
import { MiB, never, receiverOf } from "./fixtures/owner.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** What it says, and the channel at our end. */
function peer(): { readonly say: (...said: readonly Uint8Array[]) => void; channel: Channel } {
  const { port1, port2 } = new MessageChannel();
  ends.push(() => port1.close());
  // In memory of its own, like a frame.
  const say = (...said: readonly Uint8Array[]): void =>
    port1.postMessage(new Uint8Array(Buffer.concat(said)));
  return { say, channel: threadChannel(port2, never) };
}

const broken = (why: string | RegExp): object => ({
  kind: "channel-broken",
  message: expect.stringMatching(why) as unknown,
});

/** A session of which no call ends. */
function busy(receiver: Partial<SessionReceiver> = {}): {
  readonly say: ReturnType<typeof peer>["say"];
  readonly session: Session;
  readonly calls: CallMessage[];
} {
  const { say, channel } = peer();
  const calls: CallMessage[] = [];
  const running = {
    cancel: () => undefined,
    consumed: () => undefined,
    aborted: () => undefined,
    callerLost: () => undefined,
  };
  const session = new Session(
    "peer",
    channel,
    {
      ...receiverOf(new Map()),
      onCall: (call, from) => {
        calls.push(call);
        from.calls.track(call.id, running);
      },
      concurrencyOf: (target) => (target === "nobody" ? undefined : 1),
      ...receiver,
    },
    { maxCalls: 100, maxBytes: 10_000 },
  );
  return { say, session, calls };
}

const args = body(pack(["x".repeat(5000)]));
const small = body(pack([1]));

describe("calls", () => {
  test("beyond what credit allows end the connection, and name the one that they are for", async () => {
    const { say, session, calls } = busy();
    say(messages.route(0, "an actor", "stay"));
    for (let id = 0; id < 10; id++) say(messages.call(id, 0, args));
    expect(await session.closed).toMatchObject(broken(/a call to an actor without credit: 4 /));
    expect(calls).toHaveLength(4);
  });

  test("that an honest peer makes are taken: those that need no credit, and small ones", async () => {
    const { say, session, calls } = busy();
    for (let actor = 0; actor < 10; actor++) {
      say(messages.route(actor, `actor ${actor}`, "stay"));
      for (let id = 2 * actor; id < 2 * actor + 2; id++) say(messages.call(id, actor, args));
    }
    await expect.poll(() => calls.length).toBe(20);
    for (let id = 0; id < 20; id++) {
      session.calls.untrack(id);
      session.answer({ kind: "gone", id });
    }
    for (let id = 0; id < 100; id++) say(messages.call(id, 0, small));
    await expect.poll(() => calls.length).toBe(120);
    expect(session.isOpen).toBe(true);
  });

  test("that are small do not keep the big frame that they came in", async () => {
    const { say, calls } = busy();
    const rest = Array.from({ length: 100_000 }, () => messages.consumed(999, 1));
    const dependencies = [small];
    say(messages.route(0, "an actor", "stay"), messages.call(0, 0, small, dependencies), ...rest);
    say(messages.call(1, 0, body(pack(["x".repeat(MiB / 20)]))));
    await expect.poll(() => calls.length).toBe(2);
    const kept = calls.map((call) =>
      [call.arguments, ...call.dependencies].map(({ bytes }) => bytes.buffer.byteLength),
    );
    expect(kept[0]?.every((byteLength) => byteLength < MiB / 10)).toBe(true);
    // It is what it came in.
    expect(calls[1]?.arguments.start).toBeGreaterThan(0);
  });
});

describe("aborts of signals", () => {
  const reason = body(pack("x".repeat(60_000)));
  const call = [messages.route(0, "an actor", "stay"), messages.call(0, 0, small)];

  test("for a reason that is too long are refused", () => {
    const ledger = new Ledger({ maxBytes: MiB, concurrencyOf: () => 1 });
    expect(() => ledger.aborted(0, 64 * 1024)).not.toThrow();
    expect(() => ledger.aborted(0, 64 * 1024 + 1)).toThrow("over the limit of 65536");
  });

  test("for more than all calls may have end it, and those of calls that are answered count no more", async () => {
    const { say, session } = busy();
    const half = Array.from({ length: 2500 }, (_, index) => messages.abort(0, index, reason));
    say(...call, ...half);
    await expect.poll(() => session.calls.runningOf(0)).toBeDefined();
    session.calls.untrack(0);
    session.answer({ kind: "gone", id: 0 });
    say(messages.call(0, 0, small), ...half);
    say(messages.call(1, 0, small));
    await expect.poll(() => session.calls.runningOf(1)).toBeDefined();
    say(...half);
    expect(await session.closed).toMatchObject(broken(/reasons of \d+ bytes are over the limit/));
  });

  test("of calls that are over are dropped", async () => {
    const unread: unknown[] = [];
    const { say, session } = busy({ onUnread: (value) => void unread.push(value) });
    say(...call, messages.abort(7, 0, small), messages.call(1, 0, small));
    await expect.poll(() => session.calls.runningOf(1)).toBeDefined();
    expect(unread).toHaveLength(1);
    expect(session.isOpen).toBe(true);
  });
});

describe("fetches", () => {
  const fetch = messages.fetch(7, "an object");

  test.each([
    ["the number of one that is under way", [fetch, fetch]],
    ["the number of a call that is", [messages.call(7, 0, small), fetch]],
  ])("with %s end the connection", async (_name, said) => {
    const { say, session } = busy({ onFetch: () => undefined });
    say(messages.route(0, "an actor", "stay"), ...said);
    expect(await session.closed).toMatchObject(broken(/fetch 7 is under way/));
  });

  test("end it when a call takes the number of one, too", async () => {
    const { say, session } = busy({ onFetch: () => undefined });
    say(messages.route(0, "an actor", "stay"), fetch, messages.call(7, 0, small));
    expect(await session.closed).toMatchObject(broken(/call 7 is under way/));
  });

  test("more than a session asks for at once end it; those that were answered count no more", async () => {
    const asked: number[] = [];
    const { say, session } = busy({ onFetch: ({ id }) => void asked.push(id) });
    const most = 2 ** 18;
    const said = (count: number): Buffer =>
      Buffer.concat(Array.from({ length: count }, (_, id) => messages.fetch(id, "x")));
    say(said(most));
    await expect.poll(() => asked.length).toBe(most);
    for (const id of asked) session.answer({ kind: "gone", id });
    say(said(most));
    await expect.poll(() => asked.length).toBe(2 * most);
    expect(session.isOpen).toBe(true);
    say(messages.fetch(most, "x"));
    expect(await session.closed).toMatchObject(broken(/more than 262144 fetches/));
  });

  test("of ours wait until they are no more than that", async () => {
    const { say, session } = busy();
    const most = 2 ** 18;
    let settled = 0;
    const pending = {
      isCall: false,
      settle: () => void (settled += 1),
      lose: () => void (settled += 1),
    };
    for (let count = 0; count < most + 3; count++) {
      session.requests.fetch({ objectId: "x", whole: false, pending });
    }
    expect(session.requests.size).toBe(most);
    say(messages.result(5, small), messages.result(6, small));
    await expect.poll(() => settled).toBe(2);
    expect(session.requests.size).toBe(most);
    session.close({ kind: "killed", message: "the test is over" });
    await session.closed;
    expect(settled).toBe(most + 3);
  });
});

describe("names", () => {
  test.each([
    ["a target", messages.route(0, "x".repeat(MiB + 1), "m")],
    ["a method", messages.route(0, "t", "x".repeat(MiB + 1))],
    ["a holder", messages.reference("owner:1", "x".repeat(1025), 1)],
    ["an object", messages.fetch(0, "x".repeat(1025))],
  ])("that are too long for %s end the connection", async (_name, said) => {
    const { say, session } = busy();
    say(said);
    expect(await session.closed).toMatchObject(broken(/a name of \d+ bytes is over the limit/));
  });

  test("of routes may be so many bytes together, of those that are in use", () => {
    const reader = new BatchReader(false, 10_000);
    const name = (index: number): void =>
      reader.read({ bytes: messages.route(index, "x".repeat(900), "m"), buffers: [] }, () => {});
    for (let round = 0; round < 100; round++) for (let index = 0; index < 10; index++) name(index);
    expect(() => [10, 11].forEach(name)).toThrow("bytes are over the limit");
  });

  test("of holders may be as many as there are runtimes, and those that are dead count no more", async () => {
    const store = new Store("me", { changeReference: () => undefined, fetch: () => undefined });
    const entry = store.create("put");
    store.exportReference(entry, "peer");
    let isDead = true;
    let asked = 0;
    const sessions = new Sessions({
      id: "me",
      objects: { store } as Objects,
      directory: {
        death: () => {
          asked += 1;
          return isDead ? Promise.resolve({ kind: "killed", message: "it was killed" }) : never();
        },
      } as unknown as Directory,
      exchange: {} as ObjectExchange,
      pulls: new Pulls(MiB),
      onCall: () => undefined,
      concurrencyOf: () => undefined,
      references: {} as References,
      values: {
        describe: ({ name, message }: Error) => ({ name, message, stack: "", fields: {} }),
      } as unknown as Values,
    });
    const { say, channel } = peer();
    const session = sessions.add("peer", channel);
    const name = (prefix: string, count: number): void =>
      say(
        ...Array.from({ length: count }, (_, index) =>
          messages.reference(entry.id, `in flight to ${prefix}-${index}`, 1),
        ),
      );
    const most = 2 ** 16;
    for (const prefix of ["a", "b", "c"]) name(prefix, most / 2);
    const holders = (): number => [...store.held()][0]?.holders.size ?? 0;
    await expect.poll(() => asked).toBe(1.5 * most);
    await expect.poll(holders).toBe(1);
    isDead = false;
    // What nobody has heard of is not kept for anybody.
    say(messages.reference("me:99", "in flight to somebody", 1));
    name("d", most);
    await expect.poll(holders).toBe(most + 1);
    expect(session.isOpen).toBe(true);
    name("e", 1);
    expect(await session.closed).toMatchObject(broken(/more than 65536 others/));
  });
});
