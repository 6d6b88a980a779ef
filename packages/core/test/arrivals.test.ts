/** Calls whose argument is elsewhere and never comes, and those behind them. */
import { MessageChannel } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import type { Caller } from "../src/caller/caller.ts";
import { PendingArguments } from "../src/host/calls/pending-arguments.ts";
import { Session, type SessionReceiver } from "../src/rpc/session/session.ts";
import { threadChannel } from "../src/transport/thread.ts";
import { callOver, codec, never, pendingOf, receiverOf } from "./fixtures/owner.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A caller over a way of its own to a host that has those arrivals: calls, with an argument that is elsewhere or with none. */
function caller(receiver: SessionReceiver): (name: string, isAway: boolean) => Promise<unknown> {
  const { port1, port2 } = new MessageChannel();
  const here = new Session("the host", threadChannel(port1, never), receiverOf(new Map()));
  const there = new Session("the caller", threadChannel(port2, never), receiver);
  ends.push(() => {
    for (const one of [here, there]) one.close({ kind: "killed", message: "the test is over" });
  });
  const argument = { ...codec.encode("elsewhere", "value"), isLocated: true };
  return (name, isAway) => {
    const { pending, end } = pendingOf(true);
    callOver(here, pending, name, { dependencies: isAway ? [argument] : [] });
    return end;
  };
}

test.each([true, false])(
  "of an old session of a peer hold up none of its new one (ordered: %s)",
  async (isOrdered) => {
    const runtime = {
      objects: {
        store: { create: () => ({}) },
        settle: () => undefined,
        bringHere: () => new Promise(() => undefined),
      },
    } as unknown as Caller;
    const arrivals = new PendingArguments(runtime, (call, session) =>
      session.answer({ kind: "result", id: call.id, value: call.arguments }),
    );
    const receiver: SessionReceiver = {
      ...receiverOf(new Map()),
      onCall: (call, session) => {
        if (arrivals.takes(call, session, isOrdered)) return;
        session.answer({ kind: "result", id: call.id, value: call.arguments });
      },
    };
    const [old, current] = [caller(receiver), caller(receiver)];
    const stuck = [old("first", true), old("behind it", !isOrdered)];
    const lost = Promise.allSettled(stuck);
    await expect.poll(() => arrivals.isEmpty).toBe(false);
    expect(await current("new", false)).toBe("new");
    const ended = ends.splice(0);
    for (const end of ended) end();
    expect((await lost).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect.poll(() => arrivals.isEmpty).toBe(true);
  },
);
