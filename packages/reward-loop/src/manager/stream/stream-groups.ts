/**
 * Samples of a stream by the prompts that they answer: when a group is whole, which of its samples
 * may be begun, and when all of them are scored. Knows no workers and no input.
 *
 * Invariants: each sample is handed out at most once, in a unit of one group; a group is over once,
 * when it is whole and all of its samples have an outcome.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import Queue from "yocto-queue";
import { RewardGroupError } from "../../errors.ts";
import { notAnOption } from "../../options/read.ts";
import type { SampleOutcome } from "../../outcome.ts";

/** How samples of a stream belong together. */
export interface StreamGroups<Sample extends RewardSample = RewardSample> {
  /**
   * When a group, the samples of one `context.group`, is whole: with that number of samples,
   * wherever they stand, and at the end of the input with fewer; "consecutive": with the first
   * sample of another group; "input": at the end of the input. A sample without a group is a group
   * of its own. A function returns the size of the group that the sample belongs to, at least 1.
   */
  readonly size: number | ((sample: Sample) => number) | "consecutive" | "input";
  /**
   * The most samples that are held in memory because their groups are not whole; with one more the
   * stream rejects with RewardGroupError. Default 65,536.
   */
  readonly mostHeld?: number | undefined;
  /**
   * The outcome that a sample has from before: it is not asked for alone and counts in its group. A
   * function that scores whole groups is asked for all of a group of which one has none.
   */
  readonly known?: ((sample: Sample) => SampleOutcome | undefined) | undefined;
}

/** 64 Ki: some hundred megabytes of texts. */
export const mostHeldByDefault = 65_536;

export interface Member<Sample> {
  readonly index: number;
  readonly sample: Sample;
  readonly known: SampleOutcome | undefined;
  outcome: SampleOutcome | undefined;
}

export interface StreamGroup<Sample> {
  readonly members: Member<Sample>[];
  readonly size: number;
  isWhole: boolean;
  /** Members without an outcome. */
  left: number;
}

/** Samples that are begun together. */
export interface Unit<Sample> {
  readonly group: StreamGroup<Sample>;
  readonly members: readonly Member<Sample>[];
}

export class GroupGathering<Sample extends RewardSample> {
  readonly #options: StreamGroups<Sample>;
  readonly #isTogether: boolean;
  readonly #open: Map<string, StreamGroup<Sample>> = new Map();
  readonly #ready: Queue<Unit<Sample>> = new Queue();
  /** Open groups, in the order of their first samples. */
  readonly #groups: Set<StreamGroup<Sample>> = new Set();
  #held = 0;

  /**
   * @param isTogether whether the function scores whole groups: then one is handed out as a whole
   */
  constructor(options: StreamGroups<Sample>, isTogether: boolean) {
    this.#options = options;
    this.#isTogether = isTogether;
  }

  /**
   * Takes the next sample of the input. Throws RewardGroupError, and RewardLoopOptionError for a
   * group whose size is none.
   */
  add(index: number, sample: Sample): void {
    const { size, mostHeld = mostHeldByDefault, known } = this.#options;
    const name = sample.context?.group;
    if (size === "consecutive") this.#endOthers(name);
    const group = (name === undefined ? undefined : this.#open.get(name)) ?? this.#newGroup(sample);
    const member = { index, sample, known: known?.(sample), outcome: undefined };
    group.members.push(member);
    group.left += 1;
    this.#held += 1;
    if (!this.#isTogether) this.#ready.enqueue({ group, members: [member] });
    if (name === undefined || group.members.length >= group.size) this.#end(name, group);
    else this.#open.set(name, group);
    if (this.#held > mostHeld) throw new RewardGroupError(this.#open.size, mostHeld);
  }

  /** The input is at its end: all groups are whole. */
  end(): void {
    this.#endOthers(undefined);
  }

  /** The next that may be begun. One without members is of a group that only became whole. */
  next(): Unit<Sample> | undefined {
    return this.#ready.dequeue();
  }

  /** Whether nothing waits to be begun. */
  get isEmpty(): boolean {
    return this.#ready.size === 0;
  }

  /** Says that a unit has its outcomes. @returns whether its group is over */
  scored({ group, members }: Unit<Sample>): boolean {
    group.left -= members.length;
    return group.isWhole && group.left === 0 && this.#groups.delete(group);
  }

  /** Members with an outcome whose groups are not over, where no more of the input is wanted. */
  leave(): Member<Sample>[] {
    const groups = [...this.#groups];
    this.#groups.clear();
    return groups.flatMap(({ members }) => members.filter((one) => one.outcome !== undefined));
  }

  #newGroup(sample: Sample): StreamGroup<Sample> {
    const group: StreamGroup<Sample> = {
      members: [],
      size: this.#sizeFor(sample),
      isWhole: false,
      left: 0,
    };
    this.#groups.add(group);
    return group;
  }

  /** Throws RewardLoopOptionError where the user's function returns none. */
  #sizeFor(sample: Sample): number {
    const { size } = this.#options;
    const name = sample.context?.group;
    if (typeof size === "string" || name === undefined) return Infinity;
    if (typeof size === "number") return size;
    const most = size(sample);
    if (Number.isSafeInteger(most) && most >= 1) return most;
    const wanted = `a whole number of at least 1 for the group ${JSON.stringify(name)}`;
    return notAnOption("groups.size", wanted, most);
  }

  #endOthers(name: string | undefined): void {
    for (const [other, group] of this.#open) if (other !== name) this.#end(other, group);
  }

  #end(name: string | undefined, group: StreamGroup<Sample>): void {
    if (name !== undefined) this.#open.delete(name);
    group.isWhole = true;
    this.#held -= group.members.length;
    if (this.#isTogether) this.#ready.enqueue({ group, members: group.members });
    else if (group.left === 0) this.#ready.enqueue({ group, members: [] });
  }
}
