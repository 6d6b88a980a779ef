import { describe, expect, test } from "vitest";
import { TaskPace } from "../src/caller/calls/leased-worker.ts";
import { Claims, mostClaims } from "../src/rpc/session/claims.ts";

describe("the pace of a function", () => {
  test("lets nothing stand before it is known, nor where tasks are long", () => {
    const pace = new TaskPace();
    expect(pace.most).toBe(1);
    pace.note(2);
    expect(pace.most).toBe(1);
  });

  test("lets as many stand as take a millisecond together, and 32 at most", () => {
    const pace = new TaskPace();
    pace.note(0.25);
    expect(pace.most).toBe(5);
    for (let times = 0; times < 1000; times++) pace.note(0.01);
    expect(pace.most).toBe(32);
  });

  test("is long again after one that was, until many were short", () => {
    const pace = new TaskPace();
    pace.note(0.01);
    pace.note(1000);
    expect(pace.most).toBe(1);
    for (let times = 0; times < 50; times++) pace.note(0.01);
    expect(pace.most).toBe(1);
    for (let times = 0; times < 200; times++) pace.note(0.01);
    expect(pace.most).toBeGreaterThan(1);
  });
});

describe("a claim", () => {
  test("is given to the host or back to the caller, never to both", () => {
    const cells = new Int32Array(mostClaims);
    const [caller, host] = [new Claims(cells), new Claims(cells)];
    caller.open(3);
    expect([host.begins(3), caller.takesBack(3)]).toEqual([true, false]);
    caller.open(3);
    expect([caller.takesBack(3), host.begins(3)]).toEqual([true, false]);
  });
});
