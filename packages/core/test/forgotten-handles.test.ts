import { afterEach, beforeEach, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Attached, Named } from "./fixtures/attached.ts";
import { currentCaller } from "./fixtures/runtime.ts";

beforeEach(() => ray.init({ numCpus: 1, prewarm: 0 }));
afterEach(() => ray.shutdown());

const known = (): number => currentCaller()?.calls.actorCount ?? -1;

/** Collects until it is so; each round waits for the answer of an actor. */
async function becomes(
  isSo: () => boolean,
  other: ReturnType<typeof Named.remote>,
  what: string,
): Promise<void> {
  for (let round = 0; !isSo(); round++) {
    if (round === 200) expect.fail(what);
    globalThis.gc?.();
    await ray.get(other.collect.remote());
  }
}

test("detached actors that were killed, and whose handles are dropped, leave nothing behind in their creator", async () => {
  const other = Named.remote();
  await ray.get(other.hello.remote());
  await createAndKill(20);
  await becomes(() => known() <= 1, other, `${known()} are known`);
});

test("calls to actors that are gone leave nothing behind in the session with a host that lives on", async () => {
  const neighbour = Named.options({ lifetime: "detached", isolation: "shared" }).remote();
  await ray.get(neighbour.hello.remote());
  const windows = (): number =>
    [...(currentCaller()?.sessions.open ?? [])].reduce(
      (sum, session) => sum + session.windows.size,
      0,
    );
  const before = windows();
  await createAndKill(20);
  await expect.poll(windows).toBe(before);
  expect(await ray.get(neighbour.hello.remote())).toBe("hello");
});

async function createAndKill(count: number): Promise<void> {
  const actors = Array.from({ length: count }, () =>
    Named.options({ lifetime: "detached", isolation: "shared" }).remote(),
  );
  await ray.get(actors.map((actor) => actor.hello.remote()));
  await Promise.all(actors.map((actor) => ray.kill(actor)));
}

test("a handle that is kept calls after every collection, and hears of its actor's death", async () => {
  const actor = Named.options({ lifetime: "detached", name: "kept" }).remote();
  const [weak, other] = [await ray.getActor<{ hello(): string }>("kept"), Named.remote()];
  for (const one of [actor, weak]) expect(await ray.get(one.hello.remote())).toBe("hello");
  for (let round = 0; round < 20; round++) {
    globalThis.gc?.();
    await ray.get(other.collect.remote());
  }
  for (const one of [actor, weak]) expect(await ray.get(one.hello.remote())).toBe("hello");
  await ray.kill(actor);
  for (const one of [actor, weak]) {
    await expect(ray.get(one.hello.remote())).rejects.toThrow(ray.ActorDiedError);
  }
});

test("a handle of a detached actor that an actor gets by getIfExists leaves no second name behind", async () => {
  const named = Named.options({ lifetime: "detached", name: "shared name" }).remote();
  const [attached, other] = [Attached.remote(), Named.remote()];
  const directory = currentCaller()?.directory;
  if (directory === undefined) expect.fail("there is no session");
  const released: string[] = [];
  const outOfScope = directory.outOfScope.bind(directory);
  directory.outOfScope = (actorId) => {
    released.push(actorId);
    outOfScope(actorId);
  };
  expect(await ray.get(attached.greet.remote("shared name", 5))).toBe(5);
  for (let round = 0; released.length < 5; round++) {
    if (round === 200) expect.fail(`${released.length} of 5 are released`);
    await ray.get(attached.collect.remote());
    await ray.get(other.hello.remote());
  }
  for (const actorId of released) expect(await directory.actorStatus(actorId)).toBeUndefined();
  // One that was the first is not ended, either.
  expect(await ray.get(attached.greet.remote("its own", 1))).toBe(1);
  for (let round = 0; released.length < 6; round++) {
    if (round === 200) expect.fail("its own is not released");
    await ray.get(attached.collect.remote());
  }
  for (const name of ["shared name", "its own"]) {
    const actor = await ray.getActor<{ hello(): string }>(name);
    expect(await ray.get(actor.hello.remote())).toBe("hello");
  }
  await ray.kill(named);
});
