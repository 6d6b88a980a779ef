/**
 * The output of hosts on its way to their driver: in portions, each sent when the last one was
 * taken. While the driver takes less than is written, a bounded amount waits here. Further lines
 * are dropped and counted, and the driver shows the count. The hosts never wait: their work matters
 * more than their output.
 */
import { type OutputStream, timers } from "@rayling/core/cluster";

/** A line of a host's output; `owner` is the actor or task, or "". */
export type WrittenLine = readonly [
  hostId: string,
  stream: OutputStream,
  owner: string,
  line: string,
];

export interface OutputLimits {
  /** The most characters that wait here, or are sent and not yet taken. */
  readonly held: number;
  /** The number of characters that completes a portion. */
  readonly portion: number;
}

const standard: OutputLimits = { held: 8 * 1024 ** 2, portion: 256 * 1024 };

/** The cost of an empty line, in characters. */
const overhead = 64;

export class HostOutput {
  readonly #send: (lines: readonly WrittenLine[]) => Promise<unknown>;
  readonly #limits: OutputLimits;
  #waiting: WrittenLine[] = [];
  #held = 0;
  /** Held characters by host. */
  readonly #heldOf: Map<string, number> = new Map();
  #isSending = false;
  /** Dropped lines by host. */
  readonly #dropped: Map<string, number> = new Map();

  /** @param send resolves when the driver has taken the lines; it may never settle */
  constructor(
    send: (lines: readonly WrittenLine[]) => Promise<unknown>,
    limits: OutputLimits = standard,
  ) {
    this.#send = send;
    this.#limits = limits;
  }

  add(...line: WrittenLine): void {
    const [hostId] = line;
    const own = this.#heldOf.get(hostId) ?? 0;
    // A host may hold as much as is left for the others: however much one writes, the others have
    // room.
    if (own + sizeOf(line) > this.#limits.held - this.#held) {
      this.#dropped.set(hostId, (this.#dropped.get(hostId) ?? 0) + 1);
      return;
    }
    this.#sayDropped(hostId);
    this.#push(line);
    this.#begin();
  }

  /** Sends the waiting lines of a host before its end is reported. */
  hostEnded(hostId: string): void {
    this.#sayDropped(hostId);
    const own = this.#waiting.filter(([id]) => id === hostId);
    this.#waiting = this.#waiting.filter(([id]) => id !== hostId);
    while (own.length > 0) void this.#sendPortion(this.#portionOf(own));
  }

  #begin(): void {
    if (this.#isSending || this.#waiting.length === 0) return;
    this.#isSending = true;
    // Lines that came together go in one portion.
    timers.queueMicrotask(() => void this.#sendAll());
  }

  #sayDropped(hostId: string): void {
    const count = this.#dropped.get(hostId);
    if (count === undefined) return;
    this.#dropped.delete(hostId);
    const lines = count === 1 ? "a line is" : `${count} lines are`;
    this.#push([
      hostId,
      "stderr",
      "",
      `${lines} missing here: the hosts wrote more than the driver could take`,
    ]);
  }

  #push(line: WrittenLine): void {
    this.#waiting.push(line);
    this.#hold(line, sizeOf(line));
  }

  #hold([hostId]: WrittenLine, size: number): void {
    this.#held += size;
    const own = (this.#heldOf.get(hostId) ?? 0) + size;
    if (own === 0) this.#heldOf.delete(hostId);
    else this.#heldOf.set(hostId, own);
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#sendPortion(this.#portionOf(this.#waiting));
    this.#isSending = false;
  }

  /** Removes and returns the first lines. */
  #portionOf(lines: WrittenLine[]): WrittenLine[] {
    let size = 0;
    const end = lines.findIndex((line) => (size += sizeOf(line)) >= this.#limits.portion);
    return lines.splice(0, end === -1 ? lines.length : end + 1);
  }

  async #sendPortion(lines: readonly WrittenLine[]): Promise<void> {
    try {
      await this.#send(lines);
    } catch {
      // A driver that cannot show the lines is not asked again; nobody else could.
    }
    for (const line of lines) this.#hold(line, -sizeOf(line));
    if (this.#waiting.length > 0) return;
    // There is room: hosts that write nothing more get their counts reported, too.
    for (const hostId of this.#dropped.keys()) this.#sayDropped(hostId);
    this.#begin();
  }
}

function sizeOf([, , owner, line]: WrittenLine): number {
  return overhead + owner.length + line.length;
}
