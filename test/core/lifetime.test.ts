import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Meeting } from "../fixtures/actors.ts";
import { addTo, Mortal, type MortalClass, Parent, useActor } from "../fixtures/lifetime.ts";

beforeEach(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterEach(() => ray.shutdown());

const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));

/** Collects here until the actor has ended. */
async function ends(ended: Int32Array): Promise<void> {
  const collecting = setInterval(() => globalThis.gc?.(), 50);
  await Atomics.waitAsync(ended, 0, 0).value;
  clearInterval(collecting);
}

/** As long as the collector could want, the actor lives: it has answered after many collections. */
async function lives(actor: ray.ActorHandle<MortalClass>, ended: Int32Array): Promise<void> {
  for (let round = 0; round < 20; round++) {
    globalThis.gc?.();
    await ray.get(actor.increment.remote());
  }
  expect(Atomics.load(ended, 0)).toBe(0);
}

describe("an actor ends with its last handle", () => {
  test("when its creator lets go of it, after the calls that it has", async () => {
    const ended = cell();
    const gate = Meeting.remote();
    const call = Mortal.options({ maxConcurrency: 2 })
      .remote(ended)
      .slow.remote([gate.wait.remote()]);
    for (let round = 0; round < 20; round++) {
      globalThis.gc?.();
      await ray.get(gate.most.remote());
    }
    expect(Atomics.load(ended, 0)).toBe(0);
    gate.open.remote();
    expect(await ray.get(call)).toBe("finished");
    await ends(ended);
  });

  test("not while another actor holds one, nor while one lies in a stored value", async () => {
    const [ended, other] = [cell(), cell()];
    const holder = Mortal.remote(other);
    await ray.get(holder.keep.remote(Mortal.remote(ended)));
    for (let round = 0; round < 20; round++) {
      globalThis.gc?.();
      await ray.get(holder.increment.remote());
    }
    expect(Atomics.load(ended, 0)).toBe(0);
    let stored: ray.ObjectRef<{ actor: unknown }> | undefined = ray.put({
      actor: await ray.get(holder.giveFirst.remote()),
    });
    await ray.get(holder.drop.remote());
    const { actor } = (await ray.get(stored)) as { actor: ray.ActorHandle<MortalClass> };
    await lives(actor, ended);
    stored = undefined;
    await ray.kill(holder);
  });

  test("when the last of several who hold it drops it, wherever that is", async () => {
    const [ended, first, second] = [cell(), cell(), cell()];
    const holders = [Mortal.remote(first), Mortal.remote(second)] as const;
    await (async () => {
      const actor = Mortal.remote(ended);
      await ray.get(holders.map((holder) => holder.keep.remote({ nested: [actor] })));
      expect(await ray.get(useActor.remote(actor))).toBe(1);
    })();
    await ray.get(holders[0].drop.remote());
    globalThis.gc?.();
    expect(Atomics.load(ended, 0)).toBe(0);
    const dropping = setInterval(() => holders[1].drop.remote(), 100);
    await ends(ended);
    clearInterval(dropping);
  });

  test("when the host dies that held it", async () => {
    const [ended, other] = [cell(), cell()];
    const holder = Mortal.remote(other);
    await (async () => {
      const held = Mortal.remote(ended);
      // It has started: one that has not has no hook to run.
      await ray.get(held.increment.remote());
      await ray.get(holder.keep.remote(held));
    })();
    await ray.kill(holder);
    await ends(ended);
  });

  test("of an actor that another actor made", async () => {
    const ended = cell();
    const parent = Parent.remote();
    const child = await ray.get(parent.make.remote(ended, "non_detached"));
    await ray.get(parent.forget.remote());
    await lives(child, ended);
    await ray.kill(child);
  });

  test("handles found by name do not count; the name is free afterwards", async () => {
    const ended = cell();
    await (async () => {
      const actor = Mortal.options({ name: "short" }).remote(ended);
      expect(await ray.get(actor.increment.remote())).toBe(1);
    })();
    const found = await ray.getActor<MortalClass>("short");
    await ends(ended);
    await expect(ray.get(found.increment.remote())).rejects.toMatchObject({
      code: "ACTOR_DIED",
      deathCause: { kind: "out-of-scope" },
    });
    await expect(ray.getActor("short")).rejects.toThrow(ray.ActorNotFoundError);
  });

  test("a detached one lives on", async () => {
    const ended = cell();
    await (async () => {
      const actor = Mortal.options({ name: "long", lifetime: "detached" }).remote(ended);
      expect(await ray.get(actor.increment.remote())).toBe(1);
    })();
    const found = await ray.getActor<MortalClass>("long");
    await lives(found, ended);
    await ray.kill(found);
  });
});

describe("the owner's death", () => {
  test("ends what it made, whatever its restarts, and not what is detached", async () => {
    const [ended, other] = [cell(), cell()];
    const parent = Parent.remote();
    const child = await ray.get(parent.make.remote(ended, "non_detached"));
    const detached = await ray.get(parent.make.remote(other, "detached"));
    expect(await ray.get([child.increment.remote(), detached.increment.remote()])).toEqual([1, 1]);
    await ray.kill(parent);
    await expect(ray.get(child.increment.remote())).rejects.toMatchObject({
      deathCause: { kind: "owner-died" },
    });
    expect(await ray.get(detached.increment.remote())).toBe(2);
    await ray.kill(detached);
  });
});

describe("restart intensity", () => {
  test("ends an actor that dies too often, whatever its maxRestarts", async () => {
    const actor = Mortal.options({
      maxRestarts: -1,
      restartIntensity: { restarts: 2, withinMs: 1_000_000 },
    }).remote(cell());
    for (let death = 0; death < 2; death++) {
      await expect(ray.get(actor.exit.remote())).rejects.toBeInstanceOf(ray.ActorUnavailableError);
      expect(await ray.get(actor.increment.remote())).toBe(1);
    }
    await expect(ray.get(actor.exit.remote())).rejects.toMatchObject({
      code: "ACTOR_DIED",
      deathCause: { kind: "restart-intensity" },
    });
    await expect(ray.get(actor.increment.remote())).rejects.toThrow(
      "died 3 times within 1000000 ms",
    );
  });

  test("needs both of its numbers", () => {
    // @ts-expect-error no time
    expect(() => Mortal.options({ restartIntensity: { restarts: 1 } })).toThrow("withinMs");
    // @ts-expect-error not a lifetime
    expect(() => Mortal.options({ lifetime: "eternal" })).toThrow(
      '"detached" or "session" or "non_detached"',
    );
  });
});

describe("__ray_call__", () => {
  test("runs a remote function on the actor's object, in its turn", async () => {
    const actor = Mortal.remote(cell());
    const before = actor.increment.remote();
    const call = actor.__ray_call__.remote(addTo, 3);
    expect(await ray.get([before, call])).toEqual([1, 4]);
    // @ts-expect-error not a remote function
    await expect(ray.get(actor.__ray_call__.remote(5))).rejects.toThrow("takes a remote function");
  });
});
