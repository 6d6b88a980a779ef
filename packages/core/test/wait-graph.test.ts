import { describe, expect, test } from "vitest";
import { describeActor, explain } from "../src/caller/waits/stuck-reason.ts";
import type { ActorStatus, Directory } from "../src/rpc/directory.ts";
import {
  cyclesOf,
  freeNode,
  isConfirmed,
  nodeId,
  type Nodes,
  partsOfNode,
  stuckNodes,
  type WaitNode,
} from "../src/rpc/wait-graph.ts";
import { ObjectEntry } from "../src/store/object-entry.ts";

/** "a: b c" needs all of them, "a 1: b c" is stuck with one; "a @5: b" is a wait that began at 5; "a" needs nothing. */
function graph(...lines: readonly string[]): Nodes {
  return new Map(
    lines.map((line): [string, WaitNode] => {
      const [head = "", rest] = line.split(":");
      const [id = "", ...marks] = head.split(" ");
      if (rest === undefined) return [id, freeNode(id)];
      const of = rest.trim().split(" ");
      const began = marks.find((mark) => mark.startsWith("@"));
      const least = Number(marks.find((mark) => !mark.startsWith("@")) ?? of.length);
      const wait = began === undefined ? {} : { wait: { beganMs: Number(began.slice(1)) } };
      return [id, { id, name: id, says: "needs", of, least, ...wait }];
    }),
  );
}

describe("stuck is", () => {
  test.each<[string, readonly string[], string]>([
    ["what needs itself", ["a: a"], "a"],
    ["what needs each other", ["a: b", "b: c", "c: a"], "a b c"],
    ["what needs a cycle from outside", ["a: b", "b: b"], "a b"],
    ["nothing that needs what runs", ["a: b", "b"], ""],
    ["nothing that needs what is not known", ["a: b"], ""],
    ["nothing behind what may go on", ["a: b", "b: a c", "c"], ""],
    ["what needs all of several, if one is stuck", ["a 1: b c", "b: a", "c"], "a b"],
    ["what needs one of several, only if all are stuck", ["a: b c", "b: a", "c: a"], "a b c"],
    ["what needs two of three, if two are stuck", ["a 2: b c d", "b: a", "c: a", "d"], "a b c"],
    ["not what needs two of three where one is stuck", ["a 3: b c d", "b: a", "c", "d"], ""],
  ])("%s", (_, lines, expected) => {
    expect([...stuckNodes(graph(...lines))].toSorted().join(" ")).toBe(expected);
  });

  /** A node goes on when too few of those that it needs are left: what never does is stuck. */
  function withoutThoseThatGoOn(nodes: Nodes): string[] {
    const left = new Set(nodes.keys());
    for (let before = -1; before !== left.size;) {
      before = left.size;
      for (const { id, of, least } of nodes.values()) {
        if (of.filter((needed) => left.has(needed)).length < least) left.delete(id);
      }
    }
    return [...left].toSorted();
  }

  test("what is left when all goes on that can, in graphs made at random", () => {
    let state = 1;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    let found = 0;
    for (let round = 0; round < 2000; round++) {
      const size = 1 + random(12);
      const nodes = new Map<string, WaitNode>();
      for (let index = 0; index < size; index++) {
        const id = `${index}`;
        const of = Array.from({ length: random(4) }, () => `${random(size + 1)}`);
        const unique = [...new Set(of)];
        const wait = random(2) === 0 ? {} : { wait: { beganMs: random(5) } };
        nodes.set(id, { id, name: id, of: unique, least: 1 + random(unique.length + 1), ...wait });
      }
      const stuck = stuckNodes(nodes);
      expect([...stuck].toSorted()).toEqual(withoutThoseThatGoOn(nodes));
      for (const { victim, rests } of cyclesOf(nodes)) {
        found += 1;
        expect(stuck.has(victim.id)).toBe(true);
        for (const { id } of rests) expect(stuck.has(id)).toBe(true);
        // Without it, what rests on it alone goes on: ends are made one at a time.
        const after = stuckNodes(new Map([...nodes, [victim.id, freeNode(victim.id)]]));
        expect(after.size).toBeLessThan(stuck.size);
      }
    }
    expect(found).toBeGreaterThan(100);
  });
});

describe("of a cycle", () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ["the last wait to begin is to end", ["a @1: b", "b @3: c", "c @2: a"], ["b"]],
    ["that has no wait nothing is", ["a: b", "b: a"], []],
    ["a wait outside of it is not", ["a @9: b", "b @1: b"], ["b"]],
    ["each of two that have nothing in common has its own", ["a @1: a", "b @2: b"], ["b", "a"]],
    ["two that share a wait have one end", ["a @1: b c", "b @2: a", "c @3: a"], ["c"]],
  ])("%s", (_, lines, expected) => {
    expect(cyclesOf(graph(...lines)).map(({ victim }) => victim.id)).toEqual(expected);
  });

  test("the steps are told from its victim around", () => {
    const [cycle] = cyclesOf(graph("a @1: b", "b @3: c", "c: a"));
    expect(cycle?.steps).toEqual(["b needs c", "c needs a", "a needs b"]);
    expect(cycle?.rests.map(({ id }) => id).toSorted()).toEqual(["a", "b", "c"]);
  });

  test.each<[string, readonly string[], boolean]>([
    ["the same again is a proof", ["a @1: b", "b: c", "c: a", "d"], true],
    ["a change of what it rests on is none", ["a @1: b", "b: c", "c: d", "d"], false],
    ["one that is gone is none", ["a @1: b", "b: c"], false],
  ])("%s", (_, later, expected) => {
    const [cycle] = cyclesOf(graph("a @1: b", "b: c", "c: a", "d"));
    expect(cycle && isConfirmed(cycle, graph(...later))).toBe(expected);
  });

  test("another attempt is another one", () => {
    const marked = (mark: number): Nodes =>
      new Map([
        ["a", { id: "a", name: "a", of: ["b"], least: 1, wait: { beganMs: 1 } }],
        ["b", { id: "b", name: "b", of: ["a"], least: 1, mark }],
      ]);
    const [cycle] = cyclesOf(marked(1));
    expect(cycle && [1, 2].map((mark) => isConfirmed(cycle, marked(mark)))).toEqual([true, false]);
  });
});

describe("a warning claims of others no more than is known", () => {
  test("an object of another runtime may be ready there", async () => {
    const link = { id: "host-1", directory: {} as Directory };
    expect(await explain(link, new ObjectEntry("host-2", 1, "score"), 0)).toBe(
      "it belongs to host-2, which was asked for it and has not answered: score is not ready there, or host-2 does not answer now",
    );
  });

  test("a host that answers without the actor is not silent", () => {
    const status: ActorStatus = {
      actorId: "actor-1",
      className: "Judge",
      state: "ALIVE",
      reason: undefined,
      hostId: "host-2",
      load: undefined,
      silence: undefined,
    };
    expect(describeActor(status)).toBe("actor Judge (actor-1) is alive on host-2");
    expect(describeActor({ ...status, silence: "it has ended" })).toBe(
      "actor Judge (actor-1) is alive on host-2, which does not answer: it has ended",
    );
  });
});

test("the id of a node says who knows it", () => {
  const id = nodeId("task", "host-1", "driver-2:3|4");
  expect(partsOfNode(id)).toEqual({ kind: "task", home: "host-1", key: "driver-2:3|4" });
});
