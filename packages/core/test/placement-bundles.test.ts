/** Bundles of a session on an engine: who waits for them, and when the rest of the cluster is asked. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Allocation, Outcome, ResourceRequest } from "../src/placement/placement.ts";
import {
  type Amounts,
  type Demand,
  makeDemand,
  type Strategy,
} from "../src/rpc/resource-demand.ts";
import type { NodeInfo } from "../src/rpc/cluster-directory.ts";
import { EngineGroups } from "../src/runtime/engine/engine-groups.ts";
import { FirstOf } from "../src/runtime/engine/first-of.ts";
import { ReservedBundles } from "../src/runtime/engine/reserved-bundles.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const wants = (hold: Amounts, strategy?: Strategy): Demand => makeDemand(hold, hold, strategy);

/** A request whose outcome a test decides. */
function asked(): ResourceRequest & { settle: (outcome: Outcome) => void; isWithdrawn: boolean } {
  const { promise: outcome, resolve: settle } = Promise.withResolvers<Outcome>();
  return {
    outcome,
    settle,
    isWithdrawn: false,
    reason: "it waits",
    withdraw() {
      this.isWithdrawn = true;
      settle({ kind: "withdrawn" });
    },
  };
}

function allocation(): Allocation & { isReleased: boolean } {
  return {
    nodeId: "far",
    isLost: false,
    isDrained: false,
    isReleased: false,
    release() {
      this.isReleased = true;
    },
    lend: () => undefined,
  };
}

function machine(nodeId: string, resources: Amounts): NodeInfo {
  return {
    nodeId,
    alive: true,
    draining: false,
    nodeName: nodeId,
    nodeManagerHostname: "host",
    nodeManagerAddress: "127.0.0.1",
    resources,
    availableResources: resources,
    labels: { zone: nodeId },
    deathReason: undefined,
  };
}

/** Bundles that have a place, and the requests that went elsewhere. */
function reserved(bundles: readonly Amounts[], onNode = (ask: () => ResourceRequest) => ask()) {
  const elsewhere: string[] = [];
  const machines = bundles.map((_, index) => machine(`m${index}`, { CPU: 8 }));
  const all = new ReservedBundles(bundles, {
    onNode,
    elsewhere: (_, label) => {
      elsewhere.push(label);
      return asked();
    },
    machines: () => machines,
  });
  all.placed(machines.map(({ nodeId }) => nodeId));
  return { all, elsewhere };
}

async function placed(request: ResourceRequest): Promise<Allocation> {
  const outcome = await request.outcome;
  if (outcome.kind !== "placed") throw new Error(outcome.kind);
  return outcome.allocation;
}

test("the first room counts, and what comes after it is given back", async () => {
  const first = new FirstOf("it is not made yet");
  expect(first.reason).toBe("it is not made yet");
  const [one, other] = [asked(), asked()];
  first.ask(() => one);
  first.ask(() => other);
  expect(first.reason).toBe("it waits");
  const [mine, late] = [allocation(), allocation()];
  one.settle({ kind: "placed", allocation: mine });
  other.settle({ kind: "placed", allocation: late });
  expect(await placed(first)).toBe(mine);
  expect([other.isWithdrawn, mine.isReleased, late.isReleased]).toEqual([true, false, true]);
  expect(first.reason).toBe(undefined);
});

test("one refusal leaves the other place, two are the answer; a withdrawal ends both", async () => {
  const refusal = { kind: "refused", refusal: "unschedulable", reason: "gone" } as const;
  const first = new FirstOf("");
  const [one, other] = [asked(), asked()];
  first.ask(() => one);
  first.ask(() => other);
  one.settle(refusal);
  await one.outcome;
  expect(first.reason).toBe("it waits");
  other.settle(refusal);
  expect(await first.outcome).toBe(refusal);
  const second = new FirstOf("");
  const only = asked();
  second.ask(() => only);
  second.withdraw();
  expect([await second.outcome, only.isWithdrawn]).toEqual([{ kind: "withdrawn" }, true]);
});

test("a kind for which no bundle has room asks elsewhere; one that is served does not", async () => {
  const { all, elsewhere } = reserved([{ CPU: 2 }, { CPU: 1 }]);
  const holder = await placed(all.request(wants({ CPU: 2 }), "holder"));
  const big = all.request(wants({ CPU: 2 }), "big");
  const small = [1, 2, 3].map((one) => all.request(wants({ CPU: 1 }), `small ${one}`));
  for (const request of small) {
    await vi.advanceTimersByTimeAsync(400);
    (await placed(request)).release();
  }
  expect(elsewhere).toEqual(["big"]);
  holder.release();
  expect((await placed(big)).nodeId).toBe("m0");
});

test("a machine that becomes a node is waited for, and not for ever", async () => {
  const never = new Promise<Outcome>(() => undefined);
  const { all, elsewhere } = reserved([{ CPU: 1 }], (ask) => {
    const request = ask();
    return { ...request, outcome: request.outcome.then(() => never), reason: request.reason };
  });
  all.request(wants({ CPU: 1 }), "first");
  all.request(wants({ CPU: 1 }), "second");
  await vi.advanceTimersByTimeAsync(29_000);
  expect(elsewhere).toEqual([]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(elsewhere).toEqual(["second"]);
});

test.for([
  ["nothing", wants({}), false],
  ["more than a bundle", wants({ CPU: 3 }), false],
  ["what no bundle has", wants({ CPU: 1, GPU: 1 }), false],
  ["as much as a bundle", wants({ CPU: 2 }), true],
] as const)("a request for %s", ([, demand, isFor]) => {
  expect(reserved([{ CPU: 1 }, { CPU: 2 }]).all.isFor(demand)).toBe(isFor);
});

test.for([
  ["this machine", { kind: "NODE_AFFINITY", nodeId: "m1", soft: false }, "m1"],
  ["this machine if it is there", { kind: "NODE_AFFINITY", nodeId: "m9", soft: true }, "m0"],
  ["a machine that is gone", { kind: "NODE_AFFINITY", nodeId: "m9", soft: false }, "elsewhere"],
  ["a label", { kind: "NODE_LABEL", hard: { zone: { in: ["m1"] } }, soft: {} }, "m1"],
  ["a label of none", { kind: "NODE_LABEL", hard: { zone: { in: ["x"] } }, soft: {} }, "elsewhere"],
] as const satisfies readonly (readonly [string, Strategy, string])[])(
  "%s",
  async ([, strategy, expected]) => {
    const { all, elsewhere } = reserved([{ CPU: 1 }, { CPU: 1 }]);
    const request = all.request(wants({ CPU: 1 }, strategy), "elsewhere");
    if (expected === "elsewhere") expect(elsewhere).toEqual([expected]);
    else expect((await placed(request)).nodeId).toBe(expected);
  },
);

test("the end of the session ends what waits", async () => {
  const { all } = reserved([{ CPU: 1 }]);
  await placed(all.request(wants({ CPU: 1 }), "first"));
  const waiting = all.request(wants({ CPU: 1 }), "second");
  expect(all.pendingLines()).toMatchObject([{ label: "second", size: 1 }]);
  all.close(new Error("the session has ended"));
  await expect(waiting.outcome).rejects.toThrow("the session has ended");
  await expect(all.request(wants({ CPU: 1 }), "third").outcome).rejects.toThrow("has ended");
});

test("the last 1,000 removed groups are remembered, and those that are in use", async () => {
  const released: string[] = [];
  const groups = new EngineGroups({
    reserve: () => undefined,
    release: (groupId) => released.push(groupId),
  });
  const made = (groupId: string): void => {
    groups.create({
      groupId,
      name: groupId,
      strategy: "PACK",
      bundles: [{ CPU: 1 }],
      selectors: [{}],
      owner: undefined,
    });
    groups.placed(groupId, ["near"]);
  };
  made("used");
  const group = { groupId: "used", bundles: [{ CPU: 1 }] };
  const request = groups.request(
    wants(
      { CPU: 1 },
      {
        kind: "PLACEMENT_GROUP",
        group,
        bundleIndex: -1,
        captureChildTasks: false,
      },
    ),
    "a task",
  );
  const outcome = await request.outcome;
  groups.remove("used");
  for (let count = 0; count < 1500; count++) {
    made(`group${count}`);
    groups.remove(`group${count}`);
  }
  const known = (): string[] => groups.table().map(({ placementGroupId }) => placementGroupId);
  expect(known().length).toBe(1001);
  expect(known()[0]).toBe("used");
  expect(known()[1]).toBe("group500");
  expect(await groups.ready("group0")).toBe("REMOVED");
  if (outcome.kind === "placed") outcome.allocation.release();
  expect(released.at(-1)).toBe("used");
  expect(known().length).toBe(1000);
});
