import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { drainsAtExit, isAlone } from "../fixtures/isolation.ts";
import { LeavesLate, NeverReads } from "../fixtures/leaving.ts";

const variable = "RAYLING_ACTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS";

beforeEach(async () => {
  process.env[variable] = "200";
  await ray.init({ numCpus: 2, prewarm: 0 });
});
afterEach(async () => {
  delete process.env[variable];
  await ray.shutdown();
});

const hasExited = async (ref: ray.ObjectRef): Promise<void> => {
  await expect(ray.get(ref)).rejects.toMatchObject({
    code: "ACTOR_DIED",
    deathCause: { kind: "exit-actor" },
  });
};

describe("an actor that ends by itself is ended by force after its grace", () => {
  test("when a call in it never ends", async () => {
    const actor = LeavesLate.remote();
    const hanging = actor.hang.remote();
    await hasExited(actor.leave.remote());
    await hasExited(actor.hang.remote());
    await hasExited(hanging);
  });

  test("when its hook never ends, also after __ray_terminate__; it is not restarted, and its name is free", async () => {
    const Named = LeavesLate.options({ name: "late", maxRestarts: -1, maxTaskRetries: -1 });
    for (const how of ["leave", "__ray_terminate__"] as const) {
      const actor = Named.remote(false);
      await hasExited(actor[how].remote());
      await hasExited(actor.hang.remote());
    }
  });

  // What it says before it does must leave at once.
  test.skipIf(!isAlone || !drainsAtExit)("when a method holds its thread", async () => {
    const actor = LeavesLate.remote();
    await hasExited(actor.leaveAndHold.remote());
    await hasExited(actor.leave.remote());
  });

  test("when somebody does not read its last words", async () => {
    const reader = NeverReads.options({ isolation: "process" }).remote();
    const actor = LeavesLate.options({ isolation: "process" }).remote();
    await hasExited(actor.leaveTalking.remote(reader));
    await hasExited(actor.leave.remote());
    await ray.kill(reader);
  });
});

test("a grace that is no time is refused", async () => {
  await ray.shutdown();
  process.env[variable] = "soon";
  await expect(ray.init()).rejects.toThrow(`${variable} must be milliseconds, not "soon"`);
});
