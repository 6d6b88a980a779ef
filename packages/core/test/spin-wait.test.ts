import { describe, expect, test } from "vitest";
import { type SpinClock, type SpinSource, SpinWait } from "../src/transport/spin-wait.ts";

/** A thread whose turns take a microsecond, and a peer that answers after a time of its own, the longer if the thread sleeps. */
class Thread implements SpinClock {
  turns = 0;
  asked = 0;
  #us = 1000;
  #turn: (() => void) | undefined;
  readonly spinWait: SpinWait;

  constructor(source?: SpinSource) {
    this.spinWait = new SpinWait(source, this);
  }

  readonly now = (): number => this.#us / 1000;
  readonly nextTurn = (turn: () => void): void => {
    this.asked += 1;
    this.#turn = turn;
  };

  /** Sends, and gets the answer after `awakeUs` if its loop still turns then, else after `asleepUs`. Returns whether it did. */
  call(awakeUs: number, asleepUs: number): boolean {
    const sent = this.#us;
    this.spinWait.begin();
    while (this.#turn !== undefined && this.#us < sent + awakeUs) this.oneTurn();
    const wasAwake = this.#turn !== undefined;
    if (!wasAwake) while (this.#turn !== undefined && this.#us < sent + asleepUs) this.oneTurn();
    this.#us = sent + (wasAwake ? awakeUs : asleepUs);
    this.spinWait.end();
    return wasAwake;
  }

  oneTurn(): void {
    const turn = this.#turn;
    this.#turn = undefined;
    this.turns += 1;
    this.#us += 1;
    turn?.();
  }

  get isTurning(): boolean {
    return this.#turn !== undefined;
  }
}

/** In how many of 1,000 calls it was awake, after it had 20,000 to find out. */
function awakeOf(thread: Thread, awakeUs: number, asleepUs: number): number {
  for (let calls = 0; calls < 20_000; calls++) thread.call(awakeUs, asleepUs);
  let awake = 0;
  for (let calls = 0; calls < 1000; calls++) if (thread.call(awakeUs, asleepUs)) awake += 1;
  return awake;
}

/** A peer whose answers are in memory that this thread looks at. */
class Memory implements SpinSource {
  readonly seen: boolean[] = [];
  isLookedAt = false;
  hasArrived = false;
  onTake: () => void = () => undefined;

  readonly take = (): boolean => {
    if (!this.hasArrived) return false;
    this.hasArrived = false;
    this.seen.push(this.isLookedAt);
    this.onTake();
    return true;
  };
  readonly setLooking = (isLooking: boolean): void => {
    this.isLookedAt = isLooking;
  };
}

describe("a spin wait with a source", () => {
  test("takes what arrives, and says when it looks", () => {
    const memory = new Memory();
    const thread = new Thread(memory);
    expect(memory.isLookedAt).toBe(false);
    thread.spinWait.begin();
    expect(memory.isLookedAt).toBe(true);
    memory.hasArrived = true;
    memory.onTake = () => thread.spinWait.end();
    thread.oneTurn();
    expect(memory.seen).toEqual([true]);
    thread.oneTurn();
    expect(memory.isLookedAt).toBe(false);
    expect(thread.isTurning).toBe(false);
  });

  test("looks once more after it said that it stops", () => {
    const memory = new Memory();
    const thread = new Thread(memory);
    thread.spinWait.begin();
    thread.spinWait.end();
    memory.hasArrived = true;
    thread.oneTurn();
    expect(memory.seen).toEqual([false]);
    expect(thread.isTurning).toBe(false);
  });

  test("goes on looking after a receiver has thrown", () => {
    const memory = new Memory();
    const thread = new Thread(memory);
    thread.spinWait.begin();
    memory.hasArrived = true;
    memory.onTake = () => {
      throw new Error("a receiver's fault");
    };
    expect(() => thread.oneTurn()).toThrow("a receiver's fault");
    memory.hasArrived = true;
    memory.onTake = () => thread.spinWait.end();
    thread.oneTurn();
    expect(memory.seen).toEqual([true, true]);
  });
});

describe("a spin wait", () => {
  test("is kept where the answer finds the thread awake sooner than asleep", () => {
    expect(awakeOf(new Thread(), 10, 40)).toBeGreaterThan(980);
  });

  test("is given up where the answer comes no sooner, but tried now and then", () => {
    const thread = new Thread();
    expect(awakeOf(thread, 38, 24)).toBeLessThan(20);
    let isTried = false;
    for (let calls = 0; calls < 10_000; calls++) isTried ||= thread.call(38, 24);
    expect(isTried).toBe(true);
  });

  test("is tried ever more rarely where that changes nothing, and soon again when times change", () => {
    const thread = new Thread();
    awakeOf(thread, 38, 24);
    let tried = 0;
    for (let calls = 0; calls < 100_000; calls++) if (thread.call(38, 24)) tried += 1;
    expect(tried).toBeGreaterThan(5);
    expect(tried).toBeLessThan(30);
    expect(awakeOf(thread, 10, 60)).toBeGreaterThan(980);
    for (let calls = 0; calls < 100_000; calls++) thread.call(10, 60);
    expect(awakeOf(thread, 38, 24)).toBeLessThan(20);
  });

  test("is given up for slow methods, and taken up again when they are fast", () => {
    const thread = new Thread();
    awakeOf(thread, 5000, 5000);
    const before = thread.turns;
    for (let calls = 0; calls < 1000; calls++) thread.call(5000, 5000);
    expect(thread.turns - before).toBeLessThan(1000);
    expect(awakeOf(thread, 10, 40)).toBeGreaterThan(980);
  });

  test("ends by itself when nothing comes", () => {
    const thread = new Thread();
    thread.spinWait.begin();
    for (let turns = 0; turns < 200; turns++) if (thread.isTurning) thread.oneTurn();
    expect(thread.isTurning).toBe(false);
    expect(thread.turns).toBeLessThan(110);
    expect(thread.turns).toBeGreaterThan(90);
  });

  test("does not turn faster because more is sent", () => {
    const thread = new Thread();
    for (let sent = 0; sent < 100; sent++) thread.spinWait.begin();
    expect(thread.asked).toBe(1);
  });

  test("ends when the answer comes", () => {
    const thread = new Thread();
    expect(thread.call(10, 40)).toBe(true);
    thread.oneTurn();
    expect(thread.isTurning).toBe(false);
  });
});
