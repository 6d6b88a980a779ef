/**
 * The last lines of hosts, numbered, for readers that come later or wait for more.
 *
 * Lines and characters are bounded; a reader that is slower than the writers learns how many lines
 * it missed. State is kept only for readers that wait.
 */
import type { LogLine, LogPart } from "../../rpc/commands.ts";
import { Fifo } from "../../shared/fifo.ts";

const maxLines = 10_000;
const maxCharacters = 4 * 1024 * 1024;

/** The bounds of one answer. */
const maxPartLines = 1000;
const maxPartCharacters = 1024 * 1024;

export interface LogLimits {
  readonly maxLines: number;
  readonly maxCharacters: number;
}

export class LogLines {
  readonly #limits: LogLimits;
  readonly #lines: Fifo<LogLine> = new Fifo();
  readonly #waiting: Set<() => void> = new Set();
  #characters = 0;
  #next = 0;
  #hasEnded = false;

  constructor(limits: LogLimits = { maxLines, maxCharacters }) {
    this.#limits = limits;
  }

  /** The number of readers that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  add(hostId: string, stream: LogLine["stream"], owner: string, text: string): void {
    this.#lines.push({ number: this.#next, hostId, stream, owner, text });
    this.#next += 1;
    this.#characters += text.length;
    const { maxLines: lines, maxCharacters: characters } = this.#limits;
    while (this.#lines.size > lines || (this.#characters > characters && this.#lines.size > 1)) {
      this.#characters -= this.#lines.shift()?.text.length ?? 0;
    }
    this.#wake();
  }

  /** Ends the lines. */
  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  from(number: number): LogPart {
    const first = this.#next - this.#lines.size;
    const start = Math.min(Math.max(number, first), this.#next);
    const lines: LogLine[] = [];
    let characters = 0;
    for (const line of this.#lines) {
      if (line.number < start) continue;
      if (lines.length === maxPartLines || characters > maxPartCharacters) break;
      characters += line.text.length;
      lines.push(line);
    }
    const next = start + lines.length;
    return {
      lines,
      next,
      written: this.#next,
      missed: Math.max(0, first - number),
      isEnd: this.#hasEnded && next === this.#next,
    };
  }

  /**
   * Calls back once, when there are more lines or no further ones will come. Returns a function
   * that ends the wait.
   */
  whenMore(onMore: () => void): () => void {
    this.#waiting.add(onMore);
    return () => void this.#waiting.delete(onMore);
  }

  #wake(): void {
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const onMore of waiting) onMore();
  }
}
