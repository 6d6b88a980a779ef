/** Random requests, releases, withdrawals, nodes and groups against two rules: nothing is ever given out twice, and everything comes back. */
import { beforeAll, expect, test, vi } from "vitest";
import { seededRandom } from "../../../test/servers/seeded.ts";
import type { Allocation, ResourceRequest } from "../src/placement/placement.ts";
import { Scheduler } from "../src/placement/scheduler.ts";
import type { GroupStrategy } from "../src/rpc/cluster-directory.ts";
import { type Amounts, makeDemand, type Strategy } from "../src/rpc/resource-demand.ts";

/** Numbers below a bound. */
function generator(seed: number): (below: number) => number {
  const random = seededRandom(seed);
  return (below) => Math.floor(random() * below);
}

// What no node could hold is warned about, which is right and says nothing here.
beforeAll(() => void vi.spyOn(process, "emitWarning").mockImplementation(() => undefined));

const names = ["CPU", "GPU", "tool", "memory"] as const;
const strategies: readonly GroupStrategy[] = ["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"];

test.each(Array.from({ length: 20 }, (_, index) => index + 1))("seed %i", async (seed) => {
  const random = generator(seed);
  const pick = <T>(list: readonly T[]): T | undefined => list[random(Math.max(1, list.length))];
  const scheduler = new Scheduler();
  const nodeIds: string[] = [];
  const groups: { readonly groupId: string; readonly bundles: readonly Amounts[] }[] = [];
  const waiting = new Set<ResourceRequest>();
  const held: Allocation[] = [];
  let made = 0;

  const amounts = (most: number): Amounts =>
    Object.fromEntries(
      names.flatMap((name) => {
        const amount = name === "memory" ? random(most * 1000) : random(most * 10) / 10;
        return amount > 0 && random(2) === 0 ? [[name, amount]] : [];
      }),
    );
  const strategy = (): Strategy => {
    const group = pick(groups);
    switch (random(5)) {
      case 0:
        return { kind: "SPREAD" };
      case 1:
        return { kind: "NODE_AFFINITY", nodeId: pick(nodeIds) ?? "none", soft: random(2) === 0 };
      case 2:
        return group === undefined
          ? { kind: "DEFAULT" }
          : {
              kind: "PLACEMENT_GROUP",
              group,
              bundleIndex: random(group.bundles.length + 1) - 1,
              captureChildTasks: false,
            };
      default:
        return { kind: "DEFAULT" };
    }
  };
  const request = (): void => {
    const wanted = amounts(3);
    const one = scheduler.request(makeDemand(wanted, wanted, strategy()), "one");
    waiting.add(one);
    void one.outcome.then((outcome) => {
      waiting.delete(one);
      if (outcome.kind === "placed") held.push(outcome.allocation);
    });
  };
  const steps: readonly (() => void)[] = [
    request,
    request,
    request,
    () => held.splice(random(Math.max(1, held.length)), 1)[0]?.release(),
    () => held.splice(random(Math.max(1, held.length)), 1)[0]?.release(),
    () => pick([...waiting])?.withdraw(),
    () => {
      if (nodeIds.length >= 4) return;
      const nodeId = `node-${made++}`;
      nodeIds.push(nodeId);
      scheduler.addNode(nodeId, { CPU: 4, GPU: 1, tool: 2.5, memory: 4000 });
    },
    () => {
      const [nodeId] = random(4) === 0 ? nodeIds.splice(random(nodeIds.length || 1), 1) : [];
      if (nodeId !== undefined) scheduler.removeNode(nodeId);
    },
    () => {
      const bundles = Array.from({ length: 1 + random(3) }, () => ({ ...amounts(2), CPU: 1 }));
      const group = { groupId: `group-${made++}`, bundles };
      groups.push(group);
      scheduler.createGroup({
        ...group,
        name: undefined,
        strategy: pick(strategies) ?? "PACK",
        selectors: bundles.map(() => ({})),
        owner: undefined,
      });
    },
    () => {
      const [group] = groups.splice(random(Math.max(1, groups.length)), 1);
      if (group !== undefined) scheduler.removeGroup(group.groupId);
    },
  ];
  for (let step = 0; step < 600; step++) {
    steps[random(steps.length)]?.();
    if (random(3) === 0) await Promise.resolve();
    for (const { available, total } of scheduler.nodes) {
      for (const [name, units] of available) {
        expect(units, `${name} at step ${step}`).toBeGreaterThanOrEqual(0);
        expect(units, `${name} at step ${step}`).toBeLessThanOrEqual(total.get(name) ?? 0);
      }
    }
    for (const { strategy: kind, bundlesToNodeId, state } of scheduler.groups()) {
      if (state !== "CREATED") continue;
      const used = new Set(bundlesToNodeId);
      expect(used.has(undefined)).toBe(false);
      if (kind === "STRICT_PACK") expect(used.size).toBe(1);
      if (kind === "STRICT_SPREAD") expect(used.size).toBe(bundlesToNodeId.length);
    }
  }
  for (const { groupId } of groups) scheduler.removeGroup(groupId);
  for (const one of waiting) one.withdraw();
  await new Promise(setImmediate);
  for (const allocation of held) allocation.release();
  await new Promise(setImmediate);
  expect(waiting.size).toBe(0);
  expect(scheduler.pending()).toEqual([]);
  expect(scheduler.resources.available).toEqual(scheduler.resources.total);
});
