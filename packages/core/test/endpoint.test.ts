import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { expose, wrap } from "comlink";
import { expect, test } from "vitest";
import type { DeathCause } from "../src/shared/errors.ts";
import { channelEndpoint } from "../src/transport/endpoint.ts";
import { portEndpoint, threadChannel } from "../src/transport/thread.ts";

const lost: DeathCause = { kind: "exited", exitCode: 1, message: "the other side went away" };

interface Offer {
  double(value: number): number;
  fail(): never;
}
const offer: Offer = {
  double: (value) => 2 * value,
  fail: () => {
    throw new RangeError("on purpose");
  },
};

function pair(): {
  readonly closed: Promise<DeathCause>;
  readonly endpoint: ReturnType<typeof channelEndpoint>;
} {
  const { port1, port2 } = new MessageChannel();
  const [left, right] = [
    threadChannel(port1, async () => lost),
    threadChannel(port2, async () => lost),
  ];
  expose(offer, channelEndpoint(left));
  return { closed: left.closed, endpoint: channelEndpoint(right) };
}

test("an endpoint over a channel calls methods and gives their errors", async () => {
  const remote = wrap<Offer>(pair().endpoint);
  expect(await remote.double(21)).toBe(42);
  await expect(remote.fail()).rejects.toThrow("on purpose");
});

test("an endpoint over a port does, too", async () => {
  const { port1, port2 } = new MessageChannel();
  expose(offer, portEndpoint(port1));
  const remote = wrap<Offer>(portEndpoint(port2));
  expect(await remote.double(4)).toBe(8);
  await expect(remote.fail()).rejects.toThrow("on purpose");
  port1.close();
});

test("an endpoint over a port that ends has heard what the other side said last", () => {
  const { port1, port2 } = new MessageChannel();
  const heard: string[] = [];
  const left = portEndpoint(port1);
  expose({ told: (what: string) => void heard.push(what) }, left);
  const remote = wrap<{ told(what: string): void }>(portEndpoint(port2));
  for (const what of ["one", "two"]) void remote.told(what);
  // In the turn in which it was posted: nothing has been delivered.
  left.end();
  expect(heard).toEqual(["one", "two"]);
});

test.each<[string, object]>([
  [
    "a path to the constructor of functions",
    { type: "APPLY", path: ["constructor", "constructor"] },
  ],
  ["a method of every object", { type: "APPLY", path: ["__defineGetter__"] }],
  ["a path that goes on behind a method", { type: "APPLY", path: ["double", "call"] }],
  ["no path", { type: "APPLY", path: [] }],
  ["a path that is none", { type: "APPLY", path: "double" }],
  ["a property", { type: "GET", path: ["double"] }],
  ["a change", { type: "SET", path: ["double"], value: { type: "RAW", value: 1 } }],
  ["a new object", { type: "CONSTRUCT", path: ["double"] }],
  ["another endpoint", { type: "ENDPOINT", path: [] }],
  [
    "a value that cannot be made here",
    {
      type: "APPLY",
      path: ["double"],
      argumentList: [{ type: "HANDLER", name: "proxy", value: 1 }],
    },
  ],
  [
    "a value of a kind that nobody knows",
    { type: "APPLY", path: ["double"], argumentList: [{ type: "HANDLER", name: "none" }] },
  ],
])("who asks for %s is hung up on", async (_name, message) => {
  const { closed, endpoint } = pair();
  endpoint.postMessage({ id: "1", argumentList: [], ...message });
  expect(await closed).toMatchObject({ kind: "channel-broken" });
});

/** An endpoint that was used and closed; what answered there. */
async function closedOne(): Promise<WeakRef<object>> {
  const { port1, port2 } = new MessageChannel();
  const channel = threadChannel(port1, async () => lost);
  const endpoint = channelEndpoint(channel);
  // As an agent does it: what answers a driver has the way to ask it.
  const driver = wrap<Offer>(endpoint);
  const answers: Offer = { ...offer, double: (value) => (value < 0 ? (driver as never) : value) };
  expose(answers, endpoint);
  channel.close(lost);
  port2.close();
  await channel.closed;
  return new WeakRef(answers);
}

/** What somebody holds who waits for an answer that does not come. */
async function waitingOne(): Promise<WeakRef<object>> {
  const { port1, port2 } = new MessageChannel();
  const remote = wrap<Offer>(portEndpoint(port1));
  const held = { remote, answer: 0 };
  void (async () => {
    held.answer = await held.remote.double(1);
  })();
  port2.close();
  await once(port1, "close");
  return new WeakRef(held);
}

test.each([
  ["what was exposed and wrapped over a channel is let go of when that is closed", closedOne],
  ["who waits for an answer over a port is let go of when that is closed", waitingOne],
])("%s", async (_what, made) => {
  const kept: WeakRef<object>[] = [];
  for (let count = 0; count < 10; count++) kept.push(await made());
  await expect
    .poll(() => {
      globalThis.gc?.();
      return kept.filter((one) => one.deref() !== undefined).length;
    })
    .toBeLessThan(2);
});
