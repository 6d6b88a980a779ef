/**
 * Says what a command does while its thread has no time to: loading modules or computing holds it
 * for seconds. A thread of its own writes one line when nothing was written for a while.
 *
 * Both threads share a few numbers and the text. All writes to the two streams pass here: they put
 * the clock back, and take away what the thread has drawn.
 */
import type { WriteStream } from "node:tty";
import { Worker } from "node:worker_threads";
import { watchWrites } from "@rayling/core/terminal";
import type { WatchedWrites } from "@rayling/core/terminal";
import { ownModule } from "../../../own-files.ts";
import { tell } from "../output.ts";
import {
  lineBreaker,
  nowMs,
  pipedLine,
  place,
  textBytes,
  textStart,
  timePlace,
  timesStart,
  unseenMs,
} from "./shared-line.ts";
import type { SilenceMemory } from "./shared-line.ts";

/** Longer than a write takes. */
const lockMs = 100;

/** Up to the last sequence that does more than to colour. */
// oxlint-disable-next-line no-control-regex
const lastMove = /^[^]*\u001b\[[\d;?]*[A-Zh-l]/;

const entry: URL = ownModule("cli/output/silence/thread-main");

export class Silence {
  readonly #memory: SharedArrayBuffer = new SharedArrayBuffer(textStart + textBytes);
  readonly #numbers: Int32Array = new Int32Array(this.#memory, 0, timesStart / 4);
  readonly #times: BigInt64Array = new BigInt64Array(
    this.#memory,
    timesStart,
    (textStart - timesStart) / 8,
  );
  readonly #text: Uint8Array = new Uint8Array(this.#memory, textStart);
  readonly #streams: readonly WatchedWrites[];
  #hasThread = false;
  /** The last line of the terminal so far. */
  #partial = "";
  /** Whether that is a line that is drawn again. */
  #isRedrawn = false;

  private constructor() {
    this.#set("columns", process.stderr.columns || 80);
    const startMs = nowMs() - performance.now();
    this.#setTime("writtenMs", startMs - unseenMs);
    this.#setTime("spokenMs", startMs);
    this.#streams = [process.stdout, process.stderr].map((stream) => {
      const watched: WatchedWrites = watchWrites(stream, (chunk) =>
        this.#locked(() => this.#beforeWrite(stream, chunk, watched)),
      );
      return watched;
    });
    process.once("exit", this.#onExit);
  }

  static open(): Silence {
    return new Silence();
  }

  /**
   * Tells what goes on; undefined: nothing is said.
   *
   * @param forMs how long that goes on already
   */
  doing(text: string | undefined, stream: WriteStream = process.stderr, forMs = 0): void {
    if (text !== undefined) this.#startThread();
    const bytes = text === undefined ? undefined : Buffer.from(text).subarray(0, textBytes);
    const sinceMs = nowMs() - forMs;
    this.#locked(() => {
      if (bytes !== undefined) this.#text.set(bytes);
      this.#set("length", bytes?.length ?? 0);
      this.#setTime("sinceMs", sinceMs);
      this.#set("fd", stream === process.stdout ? 1 : 2);
      this.#set("isTTY", stream.isTTY ? 1 : 0);
      this.#set("columns", stream.columns || 80);
    });
  }

  /** Once, and not for a command that has nothing to tell of. */
  #startThread(): void {
    if (this.#hasThread) return;
    this.#hasThread = true;
    const workerData: SilenceMemory = { memory: this.#memory };
    // Nothing of the command depends on it.
    const thread = new Worker(entry, { workerData, execArgv: [], stderr: true });
    thread.on("error", () => undefined);
    thread.unref();
  }

  /** Says at once what goes on. */
  speak(): void {
    const isTTY = this.#stored("isTTY") === 1;
    const text = Buffer.from(this.#text.slice(0, this.#stored("length"))).toString();
    const stream = this.#stored("fd") === 1 ? process.stdout : process.stderr;
    stream.write(isTTY ? `${lineBreaker}${text}` : `${pipedLine(text)}\n`);
  }

  /** Milliseconds since something was written, here or by the thread. */
  get quietMs(): number {
    const latestMs = Math.max(this.#time("writtenMs"), this.#time("spokenMs"));
    return nowMs() - latestMs;
  }

  /** Gives the streams back. */
  close(): void {
    process.off("exit", this.#onExit);
    this.#onExit();
    for (const stream of this.#streams) stream.close();
  }

  readonly #onExit = (): void => {
    this.#set("isClosed", 1);
    Atomics.notify(this.#numbers, place.isClosed);
    if (this.#isDrawn) tell("");
  };

  get #isDrawn(): boolean {
    return this.#stored("isDrawn") === 1;
  }

  #stored(name: keyof typeof place): number {
    return Atomics.load(this.#numbers, place[name]);
  }

  #set(name: keyof typeof place, value: number): void {
    Atomics.store(this.#numbers, place[name], value);
  }

  #time(name: keyof typeof timePlace): number {
    return Number(Atomics.load(this.#times, timePlace[name]));
  }

  #setTime(name: keyof typeof timePlace, ms: number): void {
    Atomics.store(this.#times, timePlace[name], BigInt(Math.round(ms)));
  }

  /**
   * Counts as output for the one who is told what goes on: a reader of a pipe sees nothing of a
   * terminal. On a terminal text of others takes the place of a line that is drawn again.
   */
  #beforeWrite({ isTTY }: WriteStream, chunk: string | Uint8Array, { write }: WatchedWrites): void {
    if ((isTTY ? 1 : 0) !== this.#stored("isTTY")) return;
    this.#setTime("writtenMs", nowMs());
    if (!isTTY) return;
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    const isForeign = text !== "" && !text.startsWith("\r") && !text.startsWith("\n");
    const wasDrawn = Atomics.exchange(this.#numbers, place.isDrawn, 0) === 1;
    if (this.#isRedrawn && isForeign) this.#partial = "";
    if (wasDrawn || (this.#isRedrawn && isForeign)) write(`${lineBreaker}${this.#partial}`);
    this.#follow(text);
  }

  #follow(text: string): void {
    const [line, begun] = [text.lastIndexOf("\n"), text.lastIndexOf(lineBreaker)];
    if (begun > line) {
      this.#isRedrawn = true;
      this.#partial = text.slice(begun + lineBreaker.length);
    } else if (line >= 0) {
      this.#isRedrawn = false;
      this.#partial = text.slice(line + 1);
    } else this.#partial += text;
    // It is written again, and must not move the cursor again.
    this.#partial = this.#partial.replace(lastMove, "");
  }

  /** The other thread holds the lock while it writes. */
  #locked(work: () => void): void {
    const numbers = this.#numbers;
    if (Atomics.compareExchange(numbers, place.lock, 0, 1) !== 0) {
      Atomics.wait(numbers, place.lock, 1, lockMs);
      Atomics.store(numbers, place.lock, 1);
    }
    try {
      work();
    } finally {
      Atomics.store(numbers, place.lock, 0);
      Atomics.notify(numbers, place.lock);
    }
  }
}
