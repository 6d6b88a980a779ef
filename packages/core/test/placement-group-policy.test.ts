import { describe, expect, test } from "vitest";
import { type BundleRequest, type NodeRoom, planBundles } from "../src/placement/group-policy.ts";
import { toUnits } from "../src/placement/resources.ts";
import type { GroupStrategy } from "../src/rpc/cluster-directory.ts";
import type { Amounts, LabelConditions } from "../src/rpc/resource-demand.ts";

const bundle = (amounts: Amounts, selector: LabelConditions = {}): BundleRequest => ({
  units: toUnits(amounts),
  selector,
});
const cpus = (...amounts: readonly number[]): readonly BundleRequest[] =>
  amounts.map((CPU) => bundle({ CPU }));
const node = (
  nodeId: string,
  room: Amounts,
  bundlesHere = 0,
  labels: Readonly<Record<string, string>> = {},
): NodeRoom => ({ nodeId, labels, room: toUnits(room), bundlesHere });
const rooms = (...amounts: readonly number[]): readonly NodeRoom[] =>
  amounts.map((CPU, index) => node("abcdefgh"[index] as string, { CPU }));

describe("bundles are planned", () => {
  test.each<
    [string, GroupStrategy, readonly BundleRequest[], readonly NodeRoom[], string | undefined]
  >([
    ["on one node that holds them all", "PACK", cpus(2, 1), rooms(2, 3), "bb"],
    ["on few nodes, the roomy ones first", "PACK", cpus(2, 2, 2), rooms(2, 3, 4), "cca"],
    ["the big ones first", "PACK", cpus(1, 3, 4), rooms(4, 4), "bba"],
    [
      "with a step back where the first choice leaves no room",
      "PACK",
      [...cpus(2, 2), bundle({ CPU: 1, tool: 1 })],
      [node("a", { CPU: 4, tool: 1 }), node("b", { CPU: 2 })],
      "aba",
    ],
    ["as often anew as it takes", "PACK", cpus(6, 4, 4, 4, 3, 3), rooms(12, 12), "abbbaa"],
    [
      "near what is there already",
      "PACK",
      cpus(1),
      [node("a", { CPU: 4 }), node("b", { CPU: 4 }, 2)],
      "b",
    ],
    ["not at all when one has no place", "PACK", cpus(2, 3), rooms(2, 2), undefined],
    ["on one node, or not at all", "STRICT_PACK", cpus(2, 2), rooms(3, 3), undefined],
    ["around the nodes", "SPREAD", cpus(1, 1, 1), rooms(4, 4), "aba"],
    ["around the nodes, but on one if need be", "SPREAD", cpus(2, 2), rooms(1, 4), "bb"],
    ["beside a node that is overdrawn", "SPREAD", cpus(1, 1), rooms(-8, 2), "bb"],
    [
      "far from what is there already",
      "SPREAD",
      cpus(1),
      [node("a", { CPU: 4 }, 1), node("b", { CPU: 4 })],
      "b",
    ],
    ["each on its own", "STRICT_SPREAD", cpus(1, 1), rooms(4, 4), "ab"],
    [
      "each on its own, so that the choosy one finds its place",
      "STRICT_SPREAD",
      cpus(1, 4, 2),
      rooms(4, 2, 1),
      "cab",
    ],
    ["each on its own, or not at all", "STRICT_SPREAD", cpus(1, 1, 1), rooms(4, 4), undefined],
    [
      "on none where one of the group is already",
      "STRICT_SPREAD",
      cpus(1),
      [node("a", { CPU: 4 }, 1)],
      undefined,
    ],
    [
      "where their labels are",
      "PACK",
      [bundle({ CPU: 1 }, { zone: { in: ["b"] } }), bundle({ CPU: 1 })],
      [node("a", { CPU: 2 }, 0, { zone: "a" }), node("b", { CPU: 1 }, 0, { zone: "b" })],
      "ba",
    ],
  ])("%s (%s)", (_name, strategy, bundles, nodes, expected) => {
    expect(planBundles(bundles, strategy, nodes)?.join("")).toBe(expected);
  });

  test("in bounded time, also where there is no plan among millions", () => {
    const many = cpus(...Array.from({ length: 33 }, () => 2));
    const nodes = rooms(...Array.from({ length: 8 }, () => 9));
    expect(planBundles(many, "PACK", nodes)).toBe(undefined);
  });
});
