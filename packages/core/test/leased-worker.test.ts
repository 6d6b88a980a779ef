import { describe, expect, test } from "vitest";
import { mostAtOnce } from "../src/caller/calls/task/leased-worker.ts";
import { Claims } from "../src/rpc/session/claims.ts";
import { MeanDuration } from "../src/shared/mean-duration.ts";

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
