/**
 * What lies in jax-js's memory is freed: it counts references by hand, and has no counter of what was forgotten. Its allocator keeps freed blocks by size and else goes on at the end,
 * so the memory's room is known exactly: as many blocks of 64 bytes as are free, and what is left of the last page.
 */

import { asTensor } from "@rayling/data-proto";
import { numpy } from "@jax-js/jax";
import { TinyCritic, TinyPolicy } from "@rayling/trainer/tiny";
import { expect, test, vi } from "vitest";
import { answersOf, asked, rowsOf, small, tokenizer } from "./tiny-rows.ts";
import { sized } from "../../../../test/fixtures/suite.ts";

/** Those that are made while this file's imports are loaded, which happens after this. */
const memories = vi.hoisted(() => {
  type Memory = { readonly buffer: ArrayBufferLike };
  type Wasm = { Memory: new (descriptor: object) => Memory };
  const { WebAssembly: wasm } = globalThis as unknown as { readonly WebAssembly: Wasm };
  const seen: Memory[] = [];
  wasm.Memory = class extends wasm.Memory {
    constructor(descriptor: object) {
      super(descriptor);
      seen.push(this);
    }
  };
  return seen;
});

const pageBytes = 65_536;
const blockBytes = 64;
const bytes = (): number => memories[0]!.buffer.byteLength;

/** Fills what is free until the memory has to grow by a page, and frees it again. */
function freeBlocks(): number {
  const before = bytes();
  const taken = [];
  // Of equal numbers it would keep only one.
  const block = Float32Array.from({ length: blockBytes / 4 }, (_, i) => i);
  while (bytes() === before && taken.length < 1e5) taken.push(numpy.array(block));
  for (const array of taken) array.dispose();
  return taken.length;
}

/** A call that leaves something does so each time. */
const rounds = sized({ gate: 2, full: 6 });

test("calls of all kinds and sizes leave nothing behind in jax-js's memory", async () => {
  expect(memories).toHaveLength(1);
  const policy = new TinyPolicy(small);
  const critic = new TinyCritic(small);
  const round = async (): Promise<void> => {
    for (const count of [1, 7, 8, 9, 20]) {
      const rows = rowsOf(
        Array.from({ length: count }, () => [tokenizer.encode("ab="), tokenizer.encode("ba")]),
      );
      const ones = asTensor(new Float32Array(2 * count).fill(1e-3), [count, 2]);
      const { entropys } = await policy.logProbs(rows);
      await policy.update({ ...rows, gradLogProbs: ones, gradEntropys: entropys });
      await critic.values(rows);
      await critic.update({ ...rows, gradValues: ones });
      const prompts = asked(...Array.from({ length: count }, () => "cd="));
      await answersOf(policy, { prompts, n: 2, maxResponseLength: 4 });
      // One that is given up in the middle.
      for await (const _ of policy.generate({ prompts, n: 2, maxResponseLength: 4 })) break;
      await policy.setState(await policy.state());
    }
    await policy.supervise({
      pairs: [{ prompt: [{ role: "user", content: "ab=" }], answer: "ba" }],
      steps: 2,
      batchSize: 8,
    });
  };
  // Compiles everything.
  await round();
  await round();
  const free = freeBlocks();
  const pages = bytes() / pageBytes;
  for (let i = 0; i < rounds; i++) await round();
  expect(bytes() / pageBytes).toBe(pages);
  // What was free before is still, and the page that has come since.
  expect(freeBlocks()).toBe(free + pageBytes / blockBytes);
});
