/** Copies of a big value that others have pulled: who has them still, and how the owner asks. */
import { describe, expect, test, vi } from "vitest";
import { CopiesHere } from "../src/caller/objects/copies-here.ts";
import { CopySearch } from "../src/caller/objects/copy-search.ts";
import type { StandIn } from "../src/caller/objects/results-at-their-host.ts";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import type { Pending } from "../src/protocol/message.ts";
import { collectGarbage } from "../src/protocol/shared-memory.ts";
import { timers } from "../src/shared/machine/timers.ts";
import { ObjectEntry } from "../src/store/object-entry.ts";
import { entryOf, ObjectRef } from "../src/store/object-ref.ts";

const declined: unknown[] = [];
const codec = new Codec({
  isReference: (value) => value instanceof ObjectRef,
  write: (ref) => [entryOf(ref as ObjectRef).owner, entryOf(ref as ObjectRef).sequence],
  read: (data) => {
    const [owner, sequence] = data as [string, number];
    return new ObjectRef(new ObjectEntry(owner, sequence, "read"));
  },
  decline: (data) => void declined.push(data),
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What arrives: nobody has taken over the refs inside. */
function arrived(value: unknown): Encoded {
  return { ...codec.encode(value, "value"), references: undefined };
}

const block = (mark: number): Uint8Array => new Uint8Array(256 * 1024).fill(mark);

let sequence = 0;
function entryWith(owner: string, value?: Encoded): ObjectEntry {
  const entry = new ObjectEntry(owner, sequence++, "made");
  if (value !== undefined) entry.resolve(value);
  return entry;
}

describe("a copy of another's value that came here", () => {
  test("is its entry as long as that is there, also while its value is on disk", () => {
    const copies = new CopiesHere("here");
    const object = entryWith("owner");
    const entry = entryWith("here", arrived(block(1)));
    copies.note(object, entry, entry.outcome?.value as Encoded);
    expect(copies.find(object.id, "owner")).toMatchObject({ label: "made" });
    entry.moved({ bringing: "", bring: async () => undefined });
    expect(copies.find(object.id, "owner")?.found).toBe(entry);
  });

  test("is for its owner, and for nobody else", () => {
    const copies = new CopiesHere("here");
    const object = entryWith("owner");
    const entry = entryWith("here", arrived(block(1)));
    copies.note(object, entry, entry.outcome?.value as Encoded);
    expect(copies.find(object.id, "other")).toBeUndefined();
    expect(copies.find(entryWith("owner").id, "owner")).toBeUndefined();
  });

  test("is the value where the entry is the owner's, which cannot be asked for here", () => {
    const copies = new CopiesHere("here");
    const value = arrived(block(1));
    const object = entryWith("owner", value);
    copies.note(object, object, value);
    expect(copies.find(object.id, "owner")?.found).toBe(value);
  });

  /** Notes values whose entries are gone when it returns, and returns what their readers have. */
  function noted(copies: CopiesHere, object: ObjectEntry, values: unknown[]): unknown[] {
    return values.map((value) => {
      const encoded = arrived(value);
      copies.note(object, entryWith("here", encoded), encoded);
      return codec.decode(encoded);
    });
  }

  async function collected(isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      collectGarbage();
      await turn();
    }
  }

  test("is found by what its readers keep of it, and forgotten when they keep too little", async () => {
    const copies = new CopiesHere("here");
    const [whole, half] = [entryWith("owner"), entryWith("owner")];
    const value = { left: block(1), right: block(2), text: "small" };
    const kept = noted(copies, whole, [block(9), value]).slice(1);
    const left = noted(copies, half, [value]).map((read) => (read as typeof value).left);
    await collected(() => copies.size === 1);
    const found = copies.find(whole.id, "owner")?.found as Encoded;
    expect(codec.decode(found)).toEqual(value);
    expect(copies.find(half.id, "owner")).toBeUndefined();
    expect([kept.length, left.length]).toEqual([1, 1]);
  });

  test("keeps no ref that is inside alive", async () => {
    const copies = new CopiesHere("here");
    const ref = new ObjectRef(entryWith("else"));
    const [read] = noted(copies, entryWith("owner"), [{ block: block(1), ref }]);
    const { block: kept } = read as { block: Uint8Array };
    await collected(() => copies.size === 0);
    expect(kept[0]).toBe(1);
  });
});

describe("who looks for a copy", () => {
  /** Answers of each holder: none yet, and what was asked of it. */
  function search(holders: Set<string>): {
    readonly result: Promise<StandIn | undefined>;
    readonly asked: Map<string, Pending>;
    readonly timeOut: () => void;
  } {
    const asked = new Map<string, Pending>();
    let timeOut: (() => void) | undefined;
    const timer = vi.spyOn(timers, "setTimeout").mockImplementation((end: () => void) => {
      timeOut = end;
      return setTimeout(() => undefined, 0);
    });
    const result = CopySearch.run({
      with: async (peerId) => {
        if (peerId === "gone") throw new Error("it is gone");
        const requests = {
          fetch: ({ pending }: { pending: Pending }) => void asked.set(peerId, pending),
        };
        return { isOpen: peerId !== "leaving", requests };
      },
      values: { codec, decline: (value) => codec.decline(value) },
      objectId: "owner:1",
      holders,
      limitMs: 1,
    });
    timer.mockRestore();
    return { result, asked, timeOut: () => timeOut?.() };
  }

  const stubOf = (owner: string): Parameters<Pending["settle"]>[0] => ({
    kind: "result",
    id: 0,
    value: arrived({ kept: new ObjectRef(entryWith(owner)), byteLength: 1 }),
  });
  const refusal = (): Parameters<Pending["settle"]>[0] => ({
    kind: "failure",
    id: 0,
    error: codec.encodeFailure(new Error("no")),
  });

  test("gets the first, and declines what comes after it", async () => {
    const holders = new Set(["a", "b", "c", "gone", "leaving"]);
    const { result, asked } = search(holders);
    await turn();
    asked.get("a")?.settle(refusal());
    asked.get("b")?.settle(stubOf("b"));
    const copy = (await result) as StandIn;
    expect(entryOf(copy.kept).owner).toBe("b");
    declined.length = 0;
    asked.get("c")?.settle(stubOf("c"));
    expect(declined).toEqual([["c", expect.any(Number)]]);
    // The other one that has a copy may be asked again.
    expect([...holders]).toEqual(["b", "c"]);
  });

  test("gets none when all are lost, have none, or answer what is none of theirs", async () => {
    const holders = new Set(["a", "b", "c", "d", "gone", "leaving"]);
    const { result, asked } = search(holders);
    await turn();
    asked.get("a")?.lose({ kind: "unreachable", message: "it is cut off" });
    asked.get("b")?.settle(stubOf("somebody else"));
    asked.get("c")?.settle({ kind: "result", id: 0, value: arrived("no stub") });
    asked.get("d")?.settle(refusal());
    expect(await result).toBeUndefined();
    expect(holders.size).toBe(0);
  });

  test("does not wait for ever for one that stands still", async () => {
    const holders = new Set(["still"]);
    const { result, asked, timeOut } = search(holders);
    await turn();
    timeOut();
    expect(await result).toBeUndefined();
    expect(holders.size).toBe(0);
    declined.length = 0;
    asked.get("still")?.settle(stubOf("still"));
    expect(declined).toHaveLength(1);
  });
});
