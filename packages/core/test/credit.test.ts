import { afterAll, beforeAll, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Filler, Mailbox } from "./fixtures/mailbox.ts";
import { currentCaller } from "./fixtures/runtime.ts";

beforeAll(() => ray.init({ numCpus: 1, prewarm: 0 }));
afterAll(() => ray.shutdown());

test("a session that is full is asked by each actor once to say when it is not, however many calls are answered meanwhile", async () => {
  const Shared = Mailbox.options({ isolation: "shared" });
  const [filler, other] = [Shared.remote(), Shared.options({ maxConcurrency: 1 }).remote()];
  await ray.get([filler.ready.remote(), other.ready.remote()]);
  const [session, ...more] = currentCaller()?.sessions.open ?? [];
  if (session === undefined || more.length > 0) expect.fail("they share one host");
  const { requests } = session;
  const ask = requests.credit.whenAllowed.bind(requests.credit);
  let asked = 0;
  requests.credit.whenAllowed = (maxConcurrency, resume) => {
    asked += 1;
    ask(maxConcurrency, resume);
  };
  for (let call = 0; call < 5000; call++) filler.stay.remote();
  const answers = Array.from({ length: 300 }, () => other.ready.remote());
  expect(await ray.get(answers)).toHaveLength(300);
  expect(asked).toBe(2);
  await Promise.all([ray.kill(filler), ray.kill(other)]);
});

test.each(["thread", "process"] as const)(
  "calls to one actor by many handles have its credit together, and none is hung up on (%s)",
  async (isolation) => {
    const name = `full in a ${isolation}`;
    const options = { isolation, numCpus: 0, maxConcurrency: 1 } as const;
    const full = Mailbox.options({ ...options, name }).remote();
    await ray.get(full.ready.remote());
    const filler = Filler.options({ isolation, numCpus: 0 }).remote();
    expect(await ray.get(filler.fill.remote(name, 100))).toBe(100);
    const own = Array.from({ length: 50 }, () => full.takeLater.remote(new Uint8Array(1e6)));
    expect(await ray.get(own)).toHaveLength(50);
    await Promise.all([ray.kill(full), ray.kill(filler)]);
  },
);
