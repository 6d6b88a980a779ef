import { MessageChannel } from "node:worker_threads";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Batch, CallMessage, Pending, Route } from "../src/protocol/message.ts";
import { BatchWriter } from "../src/protocol/frames/batch-writer.ts";
import type { CreditLimits } from "../src/rpc/session/credit.ts";
import { Session } from "../src/rpc/session/session.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import { timers } from "../src/shared/machine/timers.ts";
import { threadChannel } from "../src/transport/thread.ts";
import { callOver, codec, receiverOf } from "./fixtures/owner.ts";

const lost: DeathCause = { kind: "exited", exitCode: 1, message: "the other side went away" };
const route: Route = { target: "actor", method: "echo" };

interface Side {
  readonly session: Session;
  /** Resolves when so many calls have arrived. */
  readonly arrived: (count: number) => Promise<void>;
  readonly calls: CallMessage[];
  readonly batches: number[];
}

const open: Side[] = [];
afterEach(() => {
  for (const { session } of open.splice(0)) session.close(lost);
});

/** Two sessions over a real channel; `answer` false keeps calls unanswered. */
function pair(
  answer: boolean,
  credit?: CreditLimits,
  onCall?: (session: Session) => void,
): { left: Side; right: Side } {
  const { port1, port2 } = new MessageChannel();
  const side = (port: typeof port1, peer: string): Side => {
    const calls: CallMessage[] = [];
    const batches: number[] = [];
    let total = 0;
    const watchers: { readonly count: number; readonly resolve: () => void }[] = [];
    const arrived = (count: number): Promise<void> =>
      new Promise((resolve) => (total >= count ? resolve() : watchers.push({ count, resolve })));
    const channel = threadChannel(port, async () => lost);
    const send = channel.send.bind(channel);
    channel.send = (batch: Batch) => {
      batches.push(batch.bytes.length);
      send(batch);
    };
    const receiver = {
      ...receiverOf(new Map()),
      onCall: (call: CallMessage, session: Session) => {
        calls.push(call);
        total += 1;
        for (const { count, resolve } of watchers) if (total >= count) resolve();
        onCall?.(session);
        if (answer) session.answer({ kind: "result", id: call.id, value: call.arguments });
      },
    };
    const made = {
      session: new Session(peer, channel, receiver, credit),
      calls,
      batches,
      arrived,
    };
    open.push(made);
    return made;
  };
  return { left: side(port1, "right"), right: side(port2, "left") };
}

/** A pending entry whose end is awaited; more than one end is an error. */
function pending(): Pending & { readonly end: Promise<unknown> } {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  let ends = 0;
  const once = (value: unknown): void => {
    ends += 1;
    if (ends > 1) reject(new Error("settled twice"));
    resolve(value);
  };
  return {
    end: promise,
    isCall: true,
    settle: (answer) => once(answer.kind === "result" ? codec.decode(answer.value) : answer.kind),
    lose: (reason) => once(reason),
  };
}

const call = (side: Side, value: unknown): Promise<unknown> => {
  const entry = pending();
  callOver(side.session, entry, [value]);
  return entry.end;
};

describe("a session", () => {
  test.each([
    ["gives a call the number of one that is under way", 7],
    ["counts further than anybody", 2 ** 31],
  ])("whose peer %s ends, and tells what is under way", async (_name, id) => {
    const { port1, port2 } = new MessageChannel();
    const calls: CallMessage[] = [];
    const lostCalls: number[] = [];
    const session = new Session(
      "peer",
      threadChannel(port1, async () => lost),
      {
        ...receiverOf(new Map()),
        onCall: (one, from) => {
          calls.push(one);
          from.calls.track(one.id, {
            cancel: () => undefined,
            consumed: () => undefined,
            aborted: () => undefined,
            callerLost: () => lostCalls.push(one.id),
          });
        },
      },
    );
    const peer = threadChannel(port2, async () => lost);
    const writer = new BatchWriter();
    for (const one of [7, id]) {
      const args = codec.encode([], "args");
      writer.write({
        kind: "call",
        id: one,
        sequence: 0,
        route,
        arguments: args,
        dependencies: [],
      });
    }
    peer.send(writer.take());
    expect(await session.closed).toMatchObject({ kind: "channel-broken" });
    expect(calls.map((one) => one.id)).toEqual([7]);
    expect(lostCalls).toEqual([7]);
  });

  test("sends the first call of a turn at once, the others as one batch, and gets the answers in few", async () => {
    // A batch leaves early where this thread was held up.
    const clock = vi.spyOn(timers, "hrtime").mockReturnValue([1, 0]);
    onTestFinished(() => clock.mockRestore());
    const { left, right } = pair(true);
    const calls = Array.from({ length: 100 }, (_, index) => call(left, index));
    expect(left.batches).toHaveLength(1);
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 100 }, (_, index) => [index]));
    expect(left.batches).toHaveLength(2);
    expect(right.batches.length).toBeLessThan(20);
  });

  test("sends a large turn in several batches, in order", async () => {
    const { left, right } = pair(true);
    const text = "x".repeat(1000);
    await Promise.all(Array.from({ length: 200 }, (_, index) => call(left, `${index} ${text}`)));
    expect(left.batches.length).toBeGreaterThan(10);
    expect(right.calls.map(({ id }) => id)).toEqual(
      Array.from({ length: 200 }, (_, index) => index),
    );
  });

  test("that looks ahead in the middle of a batch loses nothing of what is to come", async () => {
    const { left, right } = pair(true, undefined, (session) => session.poll());
    const routes = Array.from({ length: 50 }, (_, index) => ({
      target: `actor ${index}`,
      method: "echo",
    }));
    const answers: Promise<unknown>[] = [];
    const send = (to: Route, value: number): void => {
      const entry = pending();
      callOver(left.session, entry, [value], { route: to });
      answers.push(entry.end);
    };
    // The first batch names the routes that the later ones use.
    for (const [index, to] of routes.entries()) send(to, index);
    left.session.flush();
    for (let batch = 0; batch < 5; batch++) {
      for (const [index, to] of routes.entries()) send(to, index);
      left.session.flush();
    }
    const all = Array.from({ length: 6 }, () => routes.map((_, index) => [index])).flat();
    expect(await Promise.all(answers)).toEqual(all);
    expect(right.calls.map(({ route: { target } }) => target)).toEqual(
      Array.from({ length: 6 }, () => routes.map(({ target }) => target)).flat(),
    );
  });

  test("speaks in both directions at once", async () => {
    const { left, right } = pair(true);
    expect(await Promise.all([call(left, "from left"), call(right, "from right")])).toEqual([
      ["from left"],
      ["from right"],
    ]);
  });

  test("tells everything pending of the loss, exactly once, before it counts as closed", async () => {
    const { left, right } = pair(false);
    const ends = Array.from({ length: 10 }, (_, index) => call(left, index));
    right.session.close(lost);
    expect(await left.session.closed).toEqual(lost);
    expect(left.session.isOpen).toBe(false);
    expect(left.session.requests.size).toBe(0);
    expect(await Promise.all(ends)).toEqual(ends.map(() => lost));
  });

  test("may be closed twice; the first reason stays; sending on its channel then throws", async () => {
    const { port1 } = new MessageChannel();
    const channel = threadChannel(port1, async () => lost);
    channel.close({ kind: "killed", message: "first" });
    channel.close(lost);
    expect(await channel.closed).toEqual({ kind: "killed", message: "first" });
    expect(() => channel.send({ bytes: new Uint8Array(1), buffers: [] })).toThrow("closed");
  });
});

describe("credit", () => {
  test("bounds the unanswered calls; waiters go on in the order they asked", async () => {
    const { left, right } = pair(false, { maxCalls: 3, maxBytes: 1e6 });
    const sent: string[] = [];
    const send = (name: string): void => {
      if (left.session.requests.credit.allows(1)) {
        sent.push(name);
        void call(left, name);
      } else {
        left.session.requests.credit.whenAllowed(1, () => send(name));
      }
    };
    for (const name of ["a", "b", "c", "d", "e", "f"]) send(name);
    expect(sent).toEqual(["a", "b", "c"]);
    left.session.flush();
    await right.arrived(3);
    for (const { id, arguments: value } of right.calls.splice(0, 2)) {
      right.session.answer({ kind: "result", id, value });
    }
    await right.arrived(5);
    expect(sent).toEqual(["a", "b", "c", "d", "e"]);
    expect(left.session.requests.size).toBe(3);
  });

  test("bounds the bytes that are under way, out of band ones too", () => {
    const { left } = pair(false, { maxCalls: 100, maxBytes: 100_000 });
    void call(left, new Uint8Array(80_000));
    expect(left.session.requests.credit.allows(1)).toBe(true);
    void call(left, new Uint8Array(80_000));
    expect(left.session.requests.credit.allows(1)).toBe(false);
  });

  test("is never less than twice the concurrency of the actor, whose calls may wait for each other", () => {
    const { left } = pair(false, { maxCalls: 1, maxBytes: 1e6 });
    for (let index = 0; index < 19; index++) void call(left, index);
    expect(left.session.requests.credit.allows(1)).toBe(false);
    expect(left.session.requests.credit.allows(10)).toBe(true);
  });

  test("that is waited for when the session is lost is given, so that nobody waits for ever", async () => {
    const { left } = pair(false, { maxCalls: 1, maxBytes: 1e6 });
    void call(left, 1);
    const resumed = new Promise<void>((resolve) =>
      left.session.requests.credit.whenAllowed(1, resolve),
    );
    left.session.close(lost);
    await resumed;
  });
});
