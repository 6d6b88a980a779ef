/** Values of many bytes between two runtimes that share no memory: over a real connection, which is cut, and with peers that mean no good. */
import { fork } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Pulls } from "../src/caller/objects/pulls.ts";
import type { Batch, Message } from "../src/protocol/message.ts";
import { BatchWriter } from "../src/protocol/frames/batch-writer.ts";
import { Session, type SessionReceiver } from "../src/rpc/session/session.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import type { Channel } from "../src/transport/channel.ts";
import { listen } from "../src/transport/link/listen.ts";
import { dial } from "../src/transport/link/dial.ts";
import { maxPartBytes } from "../src/transport/socket/framing.ts";
import type { Link } from "../src/transport/link/link.ts";
import { Cuttable } from "./fixtures/cuttable.ts";
import {
  callOver,
  fetched,
  MiB,
  network,
  never,
  noise,
  pendingOf,
  receiverOf,
  token,
} from "./fixtures/owner.ts";

const died: DeathCause = { kind: "exited", exitCode: 1, message: "it died" };
const ends: (() => void)[] = [];
afterEach(() => {
  vi.unstubAllGlobals();
  for (const end of ends.splice(0)) end();
});

interface Ends {
  readonly near: Link;
  readonly far: Link;
  readonly way: Cuttable;
}

async function connected(): Promise<Ends> {
  const accepted = Promise.withResolvers<Channel>();
  const listener = await listen({
    address: { place: { host: "127.0.0.1", port: 0 }, token },
    explain: never,
    onChannel: (channel) => accepted.resolve(channel),
    network,
  });
  const way = new Cuttable((listener.address as AddressInfo).port);
  const near = await dialled(await way.listen());
  const far = (await accepted.promise) as Link;
  ends.push(() => {
    near.close(died);
    far.close(died);
    way.end();
    listener.close();
  });
  return { near, far, way };
}

async function dialled(port: number): Promise<Link> {
  const place = { host: "127.0.0.1", port };
  const hello = { peerId: "near", wayId: undefined };
  const options = { peerId: "far", explain: never, network };
  return (await dial({ place, token }, hello, options)) as Link;
}

/** The same channel, whose batches are looked at. */
function watched(
  link: Link,
  watch: { readonly sent?: (batch: Batch) => void; readonly came?: (batch: Batch) => void },
): Channel {
  return {
    closed: link.closed,
    get isOpen() {
      return link.isOpen;
    },
    send: (batch) => {
      watch.sent?.(batch);
      link.send(batch);
    },
    onMessage: (receiver) =>
      link.onMessage((batch) => {
        watch.came?.(batch);
        receiver(batch);
      }),
    takeParts: (place) => link.takeParts(place),
    drained: () => link.drained(),
    drainNow: () => link.drainNow(),
    close: (reason) => link.close(reason),
  };
}

const same = (left: unknown, right: Uint8Array): boolean =>
  Buffer.compare(Buffer.from(left as Uint8Array), right) === 0;

describe("a value of many bytes", () => {
  test.each([
    ["as much as goes at once", maxPartBytes],
    ["one byte more", maxPartBytes + 1],
    ["whole parts", 4 * maxPartBytes],
    ["many parts and a piece", 33 * MiB + 17],
  ])("arrives as it is: %s", async (_name, size) => {
    const { near, far } = await connected();
    const value = noise(size, 1);
    const empty = new Float64Array(0);
    void new Session(
      "near",
      far,
      receiverOf(new Map([["o", { value, empty, more: [value.slice(0, 3 * MiB)] }]])),
    );
    const session = new Session("far", near, receiverOf(new Map()));
    const got = (await fetched(session, "o")) as {
      value: unknown;
      empty: unknown;
      more: unknown[];
    };
    expect(same(got.value, value)).toBe(true);
    expect(got.empty).toEqual(empty);
    expect(same(got.more[0], value.slice(0, 3 * MiB))).toBe(true);
    expect(session.requests.size).toBe(0);
  });

  test("lets what else is said pass, and has few parts on their way", async () => {
    const { near, far } = await connected();
    const value = noise(64 * MiB, 2);
    const order: string[] = [];
    let sent = 0;
    let came = 0;
    let most = 0;
    const sentPart = ({ part }: Batch): void => {
      if (part !== undefined) most = Math.max(most, ++sent - came);
    };
    const firstPart = Promise.withResolvers<void>();
    const camePart = ({ part }: Batch): void => {
      if (part !== undefined && ++came === 1) firstPart.resolve();
    };
    void new Session("near", watched(far, { sent: sentPart }), receiverOf(new Map([["o", value]])));
    const session = new Session("far", watched(near, { came: camePart }), receiverOf(new Map()));
    const pull = fetched(session, "o").then((got) => {
      order.push("value");
      return got;
    });
    await firstPart.promise;
    const { pending, end } = pendingOf(true);
    callOver(session, pending, ["small"]);
    await end;
    order.push("call");
    expect(same(await pull, value)).toBe(true);
    expect(order).toEqual(["call", "value"]);
    expect(sent).toBe(32);
    expect(most).toBe(8);
  });

  test("goes on where it was when the connection is cut, again and again", async () => {
    const { near, far, way } = await connected();
    const value = noise(48 * MiB, 3);
    let came = 0;
    const cut = ({ part }: Batch): void => {
      if (part !== undefined && ++came % 5 === 0) way.cut();
    };
    let sent = 0;
    const count = ({ part }: Batch): void => void (part !== undefined && sent++);
    void new Session("near", watched(far, { sent: count }), receiverOf(new Map([["o", value]])));
    const session = new Session("far", watched(near, { came: cut }), receiverOf(new Map()));
    expect(same(await fetched(session, "o"), value)).toBe(true);
    expect(near.connection.cuts).toBeGreaterThan(1);
    // What a cut lost was sent again by the link: of the session no part was asked for twice.
    expect([sent, came]).toEqual([24, 24]);
  });

  test("waits until there is room for it, and what is lost on the way makes room", async () => {
    const { near, far } = await connected();
    const other = await connected();
    const objects = new Map([
      ["a", noise(8 * MiB, 4)],
      ["b", noise(8 * MiB, 5)],
      ["c", noise(40 * MiB, 6)],
    ]);
    const pulls = new Pulls(10 * MiB);
    const under = new Set<number>();
    let most = 0;
    const receiver: SessionReceiver = {
      ...receiverOf(new Map()),
      onParts: (bytes, from, begin) =>
        pulls.take(from, bytes, (room) => {
          under.add(bytes);
          most = Math.max(
            most,
            [...under].reduce((sum, one) => sum + one, 0),
          );
          const ended = (): void => {
            under.delete(bytes);
            room.end();
          };
          begin({ came: () => room.came(), end: ended });
        }),
    };
    // A peer that announces and never sends.
    const silent = new Session("far", other.near, receiver);
    other.far.takeParts(() => new Uint8Array(0));
    other.far.onMessage(() => {
      const writer = new BatchWriter();
      writer.write({ kind: "parts", id: 0, bytes: new Uint8Array(1), sizes: [9 * MiB] });
      other.far.send(writer.take());
      other.far.onMessage(() => other.far.close(died));
    });
    const lost = fetched(silent, "x");
    void new Session("near", far, receiverOf(objects));
    const session = new Session("far", near, receiver);
    const all = ["a", "b", "c"].map((name) => fetched(session, name));
    await expect(lost).rejects.toThrow();
    const got = await Promise.all(all);
    for (const [index, value] of [...objects.values()].entries()) {
      expect(same(got[index], value)).toBe(true);
    }
    // Each alone: the last is more than there is room for, and comes all the same.
    expect(most).toBeLessThan(41 * MiB);
    expect(under.size).toBe(0);
  });

  test("of a process that is stopped keeps no other waiting, and comes when it goes on", async () => {
    const program = fileURLToPath(new URL("./fixtures/owner-process.ts", import.meta.url));
    const child = fork(program, ["a=48:10", "b=3:11"]);
    ends.push(() => child.kill("SIGKILL"));
    const [port] = (await once(child, "message")) as [number];
    const near = await dialled(port);
    ends.push(() => near.close(died));
    const pulls = new Pulls(10 * MiB, 50);
    const stopped = Promise.withResolvers<void>();
    let parts = 0;
    const stopAtFirst = ({ part }: Batch): void => {
      if (part === undefined || ++parts > 1) return;
      child.kill("SIGSTOP");
      stopped.resolve();
    };
    const slow = watched(near, { came: stopAtFirst });
    const session = new Session("far", slow, receiverOf(new Map(), pulls));
    const order: string[] = [];
    const pull = async (from: Session, name: string): Promise<unknown> => {
      const got = await fetched(from, name);
      order.push(name);
      return got;
    };
    const late = Promise.all([pull(session, "a"), pull(session, "b")]);
    await stopped.promise;
    const other = await connected();
    const value = noise(9 * MiB, 12);
    void new Session("near", other.far, receiverOf(new Map([["c", value]])));
    const well = new Session("far", other.near, receiverOf(new Map(), pulls));
    expect(same(await pull(well, "c"), value)).toBe(true);
    expect(order).toEqual(["c"]);
    process.kill(child.pid as number, "SIGCONT");
    const [a, b] = await late;
    expect(same(a, noise(48 * MiB, 10))).toBe(true);
    expect(same(b, noise(3 * MiB, 11))).toBe(true);
  });

  test("for which there is no memory fails alone", async () => {
    const { near, far } = await connected();
    const value = noise(5 * MiB, 7);
    const small = noise(3 * MiB, 8);
    void new Session(
      "near",
      far,
      receiverOf(
        new Map([
          ["o", value],
          ["small", small],
        ]),
      ),
    );
    const session = new Session("far", near, receiverOf(new Map()));
    const Real = SharedArrayBuffer;
    vi.stubGlobal(
      "SharedArrayBuffer",
      new Proxy(Real, {
        construct(target, [size]: [number]) {
          if (size === 5 * MiB) throw new RangeError("Array buffer allocation failed");
          return new target(size);
        },
      }),
    );
    await expect(fetched(session, "o")).rejects.toThrow(`no room for ${5 * MiB}`);
    expect(same(await fetched(session, "small"), small)).toBe(true);
    expect(session.isOpen).toBe(true);
  });
});

describe("a peer that", () => {
  const batchOf = (message: Message): Batch => {
    const writer = new BatchWriter();
    writer.write(message);
    return writer.take();
  };
  const none = { bytes: new Uint8Array(0), buffers: [] };
  const announced = (id: number, sizes: readonly number[]): Batch =>
    batchOf({ kind: "parts", id, bytes: new Uint8Array(5), sizes });

  test.each<[string, readonly Batch[], string]>([
    ["wants parts of nothing", [batchOf({ kind: "want", id: 3, count: 1 })], "no parts of 3"],
    ["announces what nobody asked for", [announced(7, [9])], "nobody waits for the parts of 7"],
    [
      "announces it twice",
      [announced(0, [9]), announced(0, [9])],
      "nobody waits for the parts of 0",
    ],
    ["announces nothing", [announced(0, [0, 0])], "parts of 0 bytes"],
    ["announces more than there is", [announced(0, [2 ** 45])], "over the limit"],
    ["announces what is no size", [announced(0, [-1])], "is no valid size"],
    [
      "sends a part of nothing",
      [{ ...none, part: { id: 5, data: new Uint8Array(1) } }],
      "part of 5",
    ],
    [
      "sends a part of another size",
      [announced(0, [9]), { ...none, part: { id: 0, data: new Uint8Array(8) } }],
      "a part of 8 bytes does not belong to 0",
    ],
    [
      "sends parts of what is no answer",
      [announced(0, [1]), { ...none, part: { id: 0, data: new Uint8Array(1) } }],
      "unknown frame kind 0",
    ],
    [
      "sends a part above the limit",
      [
        announced(0, [maxPartBytes + 1]),
        { ...none, part: { id: 0, data: new Uint8Array(maxPartBytes + 1) } },
      ],
      "over the limit",
    ],
  ])("%s ends the channel, and no wait hangs", async (_name, batches, message) => {
    const { near, far } = await connected();
    const session = new Session("far", near, receiverOf(new Map()));
    far.takeParts(() => new Uint8Array(0));
    far.onMessage(() => undefined);
    const wait = fetched(session, "o");
    session.flush();
    for (const batch of batches) far.send(batch);
    await expect(wait).rejects.toThrow(message);
    expect((await session.closed).kind).toBe("channel-broken");
  });

  test("wants more parts at once than may be on their way ends the channel", async () => {
    const { near, far } = await connected();
    const owner = new Session("far", near, receiverOf(new Map([["o", noise(40 * MiB, 9)]])));
    far.takeParts(() => new Uint8Array(maxPartBytes));
    far.onMessage(({ part }) => {
      if (part === undefined) far.send(batchOf({ kind: "want", id: 0, count: 9 }));
    });
    far.send(batchOf({ kind: "fetch", id: 0, objectId: "o", whole: false }));
    expect((await owner.closed).message).toContain("too many at once");
  });
});
