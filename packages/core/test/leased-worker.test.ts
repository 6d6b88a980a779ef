import { MessageChannel } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { AnyArguments } from "../src/caller/calls/call-arguments.ts";
import { Call, type CallPlan } from "../src/caller/calls/call.ts";
import type { ClientLink } from "../src/caller/calls/client-link.ts";
import { mostAtOnce } from "../src/caller/calls/task/leased-worker.ts";
import { TaskClient } from "../src/caller/calls/task/task-client.ts";
import { toFailure } from "../src/protocol/failure.ts";
import type { WorkerLease } from "../src/rpc/directory.ts";
import { Claims } from "../src/rpc/session/claims.ts";
import { Session } from "../src/rpc/session/session.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import { MeanDuration } from "../src/shared/mean-duration.ts";
import { ObjectEntry } from "../src/store/object-entry.ts";
import { threadChannel } from "../src/transport/thread.ts";
import { codec, receiverOf } from "./fixtures/owner.ts";

describe("how many tasks stand", () => {
  test("none before their duration is known, nor where they are long", () => {
    const mean = new MeanDuration();
    expect(mostAtOnce(mean)).toBe(1);
    mean.note(6);
    expect(mostAtOnce(mean)).toBe(1);
  });

  test("one where they take some milliseconds", () => {
    const mean = new MeanDuration();
    mean.note(4);
    expect(mostAtOnce(mean)).toBe(2);
  });

  test("as many as take a millisecond together, and 64 at most", () => {
    const mean = new MeanDuration();
    mean.note(0.25);
    expect(mostAtOnce(mean)).toBe(5);
    for (let times = 0; times < 1000; times++) mean.note(0.01);
    expect(mostAtOnce(mean)).toBe(64);
  });

  test("none after a long one, until many were short", () => {
    const mean = new MeanDuration();
    mean.note(0.01);
    mean.note(1000);
    expect(mostAtOnce(mean)).toBe(1);
    for (let times = 0; times < 30; times++) mean.note(0.01);
    expect(mostAtOnce(mean)).toBe(1);
    for (let times = 0; times < 200; times++) mean.note(0.01);
    expect(mostAtOnce(mean)).toBeGreaterThan(1);
  });
});

describe("a claim", () => {
  test("is given to the host or back to the caller, never to both", () => {
    const cells = new Int32Array(8);
    const [caller, host] = [new Claims(() => cells), new Claims(() => cells)];
    expect(caller.opens(3)).toBe(true);
    expect([host.begins(3), caller.takesBack(3)]).toEqual([true, false]);
    caller.opens(3);
    expect([caller.takesBack(3), host.begins(3)]).toEqual([true, false]);
  });

  test("is the host's where nothing is shared", () => {
    const claims = new Claims(() => undefined);
    expect([claims.opens(3), claims.takesBack(3), claims.begins(3)]).toEqual([false, false, true]);
    const few = new Claims(() => new Int32Array(2));
    expect([few.opens(3), few.takesBack(3), few.begins(3)]).toEqual([false, false, true]);
  });
});

describe("a task that fails says whether it may have run", () => {
  const killed: DeathCause = { kind: "killed", message: "it was killed" };
  const cut: DeathCause = { kind: "unreachable", message: "the cable was cut" };
  const refused: WorkerLease = { state: "refused", cause: { kind: "exited", message: "no room" } };
  const leased: WorkerLease = { state: "leased", hostId: "worker" };

  /** What a task fails with that gets these leases one after the other, and loses each worker it is sent to for that reason. */
  async function failureOf(
    given: readonly WorkerLease[],
    lost: DeathCause,
    isReached = true,
  ): Promise<string | undefined> {
    const leases = [...given];
    const session = async (hostId: string): Promise<Session> => {
      if (!isReached) throw new Error(`${hostId} is away`);
      const { port1, port2 } = new MessageChannel();
      const channel = threadChannel(port1, async () => lost);
      const worker = new Session(
        "driver",
        threadChannel(port2, async () => lost),
        {
          ...receiverOf(new Map()),
          onCall: () => worker.close(lost),
        },
      );
      return new Session(hostId, channel, receiverOf(new Map()));
    };
    const link = {
      directory: {
        leaseWorker: async () => leases.shift() ?? refused,
        releaseWorker: () => undefined,
      },
      values: { describe: (error: unknown) => toFailure(error, { encodable: () => true }) },
      objects: { bringing: () => false },
      session,
    };
    const plan: CallPlan = {
      route: { target: "task", method: "score" },
      maxRetries: 1,
      retryExceptions: false,
      worker: { key: "any", demand: { strategy: { kind: "DEFAULT" } } } as never,
    };
    const client = new TaskClient(link as unknown as ClientLink);
    const entry = new ObjectEntry("driver", 1, "score");
    const args = new AnyArguments(codec.encode([], "args"), [], undefined);
    client.submit(new Call(client, plan, args, entry));
    await new Promise<void>((resolve) => entry.watch(() => resolve()));
    return entry.outcome?.ok === false ? entry.outcome.failure.message : undefined;
  }

  test.each<[string, WorkerLease[], DeathCause, string]>([
    [
      "that no worker was given",
      [refused],
      killed,
      "task score has no worker: no room; the task was not sent",
    ],
    [
      "whose second attempt was given none",
      [leased, refused],
      killed,
      "task score has no worker for another attempt: no room; an earlier attempt may or may not have run",
    ],
    [
      "whose worker died",
      [leased, leased],
      killed,
      "the worker running task score died: it was killed",
    ],
    [
      "whose worker cannot be reached and may live",
      [leased, leased],
      cut,
      "the worker of task score cannot be reached from here: the cable was cut; the task may or may not have run",
    ],
  ])("%s", async (_name, leases, lost, message) => {
    expect(await failureOf(leases, lost)).toBe(message);
  });

  test("whose workers could not be reached", async () => {
    const leases = Array.from({ length: 5 }, () => leased);
    expect(await failureOf(leases, cut, false)).toBe(
      "task score has no worker: no worker can be reached from here: worker is away; the task was not sent",
    );
  });
});
