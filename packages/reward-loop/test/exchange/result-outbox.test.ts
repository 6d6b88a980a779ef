/** What a call is answered with, and how many stay open. Turns are those of the test. */

import { describe, expect, test } from "vitest";
import { Outbox } from "../../src/exchange/result-outbox.ts";
import type { NumberedRows } from "../../src/exchange/result-outbox.ts";
import { fromTables } from "../../src/exchange/column-table.ts";

interface Row {
  readonly score: number;
}

function newOutbox(): {
  readonly outbox: Outbox<Row>;
  /** A call with so many rows. */
  readonly call: (count: number) => void;
  readonly turn: () => Promise<void>;
  /** Of the calls, by their number, as they were answered. */
  readonly answers: [call: number, ids: readonly number[]][];
} {
  const turns: (() => void)[] = [];
  const outbox = new Outbox<Row>((turn) => void turns.push(turn));
  const answers: [number, readonly number[]][] = [];
  let calls = 0;
  const answered = (call: number, { ids, rows }: NumberedRows): void => {
    expect(fromTables(rows)).toEqual(ids.map((id) => ({ score: id / 2 })));
    answers.push([call, ids]);
  };
  return {
    outbox,
    answers,
    call: (count) => {
      const call = calls++;
      void outbox.exchange(count).then((results) => answered(call, results));
    },
    turn: async () => {
      for (const one of turns.splice(0)) one();
      await Promise.resolve();
    },
  };
}

describe("an outbox", () => {
  test("answers the oldest call with all that is ready, and the last ones when nothing is under way", async () => {
    const { outbox, call, turn, answers } = newOutbox();
    call(2);
    call(1);
    outbox.push(1, { score: 0.5 });
    outbox.push(0, { score: 0 });
    await turn();
    expect(answers).toEqual([[0, [1, 0]]]);
    // It brings no row, and another one is open.
    call(0);
    await turn();
    expect(answers.slice(1)).toEqual([[2, []]]);
    outbox.push(2, { score: 1 });
    await turn();
    expect(answers.slice(2)).toEqual([[1, [2]]]);
  });

  test("keeps no call open that brought no row, but the last one", async () => {
    const { outbox, call, turn, answers } = newOutbox();
    call(2);
    outbox.push(0, { score: 0 });
    await turn();
    expect(answers).toEqual([[0, [0]]]);
    for (let count = 0; count < 100; count++) call(0);
    await turn();
    expect(answers).toHaveLength(100);
    outbox.push(1, { score: 0.5 });
    await turn();
    expect(answers.at(-1)).toEqual([1, [1]]);
  });

  test("keeps few calls open, however long something is under way, and one at least", async () => {
    const { outbox, call, turn, answers } = newOutbox();
    // It stays under way throughout.
    call(1);
    for (let id = 1; id <= 5000; id++) {
      call(1);
      // Ten at a time, in the order in which they came.
      if (id % 10 === 0)
        for (let done = id - 9; done <= id; done++) outbox.push(done, { score: done / 2 });
      await turn();
      expect(id + 1 - answers.length).toBeLessThanOrEqual(16);
      expect(id + 1 - answers.length).toBeGreaterThanOrEqual(1);
    }
    outbox.push(0, { score: 0 });
    await turn();
    expect(answers).toHaveLength(5001);
    const ids = answers.flatMap(([, some]) => some);
    expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 5001 }, (_, id) => id));
  });

  test("tells of results that are withheld with those that are not, and by themselves", async () => {
    const turns: (() => void)[] = [];
    const outbox = new Outbox<Row, string>((turn) => void turns.push(turn));
    const turn = (): void => turns.splice(0).forEach((one) => one());
    const first = outbox.exchange(3);
    outbox.push(1, { score: 0.5 });
    outbox.withhold(2, "big");
    expect(outbox.waiting).toEqual([1, 2]);
    turn();
    expect(outbox.isEmpty).toBe(true);
    expect(await first).toMatchObject({ ids: [1], withheld: [{ id: 2, note: "big" }] });
    const second = outbox.exchange(0);
    outbox.withhold(0, "odd");
    expect(outbox.isEmpty).toBe(false);
    turn();
    expect(await second).toEqual({ ids: [], rows: [], withheld: [{ id: 0, note: "odd" }] });
  });
});
