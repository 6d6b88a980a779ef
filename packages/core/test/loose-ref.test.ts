import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { LooseRef, prepareLooseRefs } from "../src/protocol/loose-ref.ts";
import { collectGarbage } from "../src/protocol/shared-memory.ts";

interface Target {
  readonly mark: number;
}

/** The job that makes carriers ends before the test begins. */
beforeEach(async () => {
  prepareLooseRefs();
  await turn();
});

function refTo(mark: number): LooseRef<Target> {
  return new LooseRef({ mark });
}

/** Looks at the target without leaving it in the caller's frame. */
function markOf(ref: LooseRef<Target>): number | undefined {
  return ref.deref()?.mark;
}

describe("a loose reference", () => {
  test("keeps its target neither by being made nor by being read in this job", () => {
    const refs = [1, 2, 3].map(refTo);
    expect(refs.map(markOf)).toEqual([1, 2, 3]);
    collectGarbage();
    expect(refs.map(markOf)).toEqual([undefined, undefined, undefined]);
  });

  test("finds a target that somebody holds, however often it looks", async () => {
    const target = { mark: 7 };
    const refs = [new LooseRef(target), new LooseRef(target)];
    for (let look = 0; look < 6; look++) {
      expect(refs.map((ref) => ref.deref())).toEqual([target, target]);
      collectGarbage();
      if (look % 3 === 2) await turn();
    }
    expect(target.mark).toBe(7);
  });

  test("finds its target when its job made more than were prepared, and lets it go after", async () => {
    const targets = Array.from({ length: 3000 }, (_, mark) => ({ mark }));
    const refs = targets.map((target) => new LooseRef(target));
    collectGarbage();
    const marks = targets.map(({ mark }) => mark);
    expect(refs.map(markOf)).toEqual(marks);
    expect(refs.map(markOf)).toEqual(marks);
    targets.length = 0;
    await turn();
    collectGarbage();
    expect(refs.filter((ref) => ref.deref() !== undefined)).toEqual([]);
  });
});
