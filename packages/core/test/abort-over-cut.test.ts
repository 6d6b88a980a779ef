import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Session } from "../src/rpc/session/session.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import type { Channel } from "../src/transport/channel.ts";
import { dial } from "../src/transport/link/dial.ts";
import { listen } from "../src/transport/link/listen.ts";
import { Cuttable } from "./fixtures/cuttable.ts";
import { callOver, codec, network, never, pendingOf, receiverOf, token } from "./fixtures/owner.ts";

const over: DeathCause = { kind: "exited", message: "the test is over" };

test("an abort that is sent while the way is cut arrives when there is one again, once", async () => {
  const accepted = Promise.withResolvers<Channel>();
  const listener = await listen({
    address: { place: { host: "127.0.0.1", port: 0 }, token },
    explain: never,
    onChannel: (channel) => accepted.resolve(channel),
    network,
  });
  const way = new Cuttable((listener.address as AddressInfo).port);
  const place = { host: "127.0.0.1", port: await way.listen() };
  const hello = { peerId: "near", wayId: undefined };
  const near = await dial({ place, token }, hello, { peerId: "far", explain: never, network });
  const far = await accepted.promise;
  const caller = new Session("far", near, receiverOf(new Map()));
  const heard: unknown[] = [];
  const answering = new Session("near", far, {
    ...receiverOf(new Map()),
    onCall: ({ id }, session) =>
      session.calls.track(id, {
        cancel: () => undefined,
        consumed: () => undefined,
        callerLost: () => undefined,
        aborted: (index, reason) => {
          heard.push([index, codec.decode(reason)]);
          if (heard.length < 2) return;
          session.calls.untrack(id);
          session.answer({ kind: "result", id, value: codec.encode("heard", "result") });
        },
      }),
  });
  const { pending, end } = pendingOf(true);
  const id = callOver(caller, pending, [1]);
  caller.flush();
  way.closed = true;
  caller.abort(id, 0, codec.encode("in the dark", "reason"));
  caller.flush();
  way.closed = false;
  caller.abort(id, 1, codec.encode("in the light", "reason"));
  expect(await end).toBe("heard");
  expect(heard).toEqual([
    [0, "in the dark"],
    [1, "in the light"],
  ]);
  for (const session of [caller, answering]) session.close(over);
  way.end();
  listener.close();
});
