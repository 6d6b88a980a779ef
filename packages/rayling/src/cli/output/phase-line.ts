/**
 * The current phase of a command that has no progress of its own: on a terminal one line that is
 * drawn again, with the time that it takes; elsewhere a line for each change, and one that says
 * that it goes on before two seconds are over without output.
 */
import type { WriteStream } from "node:tty";
import { plain } from "./output.ts";

const everyMs = 1000;
/** Elsewhere than on a terminal. */
const quietMs = 1900;

export class PhaseLine implements Disposable {
  readonly #stream: WriteStream;
  readonly #ticking: NodeJS.Timeout;
  #text: string | undefined;
  #sinceMs = 0;
  #writtenMs = performance.now();
  /** Length of the line that is drawn. */
  #drawn = 0;

  constructor(stream: WriteStream = process.stdout) {
    this.#stream = stream;
    this.#ticking = setInterval(() => this.#tick(), stream.isTTY ? everyMs : 100).unref();
  }

  /** Shows what is done now. */
  show(text: string): void {
    this.#text = text;
    this.#sinceMs = performance.now();
    if (this.#stream.isTTY) this.#draw();
    else this.say(text);
  }

  /** Lets the current phase stay on the terminal; elsewhere it is printed already. */
  keep(): void {
    if (this.#stream.isTTY && this.#text !== undefined) this.say(this.#text);
  }

  /** Prints a line that stays. */
  say(text: string): void {
    this.#clear();
    this.#stream.write(`${plain(text)}\n`);
    this.touch();
  }

  /** Something else has written. @param doing what goes on from now */
  touch(doing?: string): void {
    this.#writtenMs = performance.now();
    if (doing === undefined) return;
    this.#text = doing;
    this.#sinceMs = this.#writtenMs;
  }

  /** Takes the line away; on a terminal something else shows what goes on. */
  pause(): void {
    this.#clear();
    this.#text = undefined;
  }

  [Symbol.dispose](): void {
    this.pause();
    clearInterval(this.#ticking);
  }

  #tick(): void {
    if (this.#text === undefined) return;
    if (this.#stream.isTTY) this.#draw();
    else if (performance.now() - this.#writtenMs >= quietMs) this.say(`  ... ${this.#line()}`);
  }

  #draw(): void {
    this.#clear();
    const line = plain(this.#line()).slice(0, (this.#stream.columns || 80) - 1);
    this.#stream.write(line);
    this.#drawn = line.length;
  }

  #line(): string {
    const seconds = Math.floor((performance.now() - this.#sinceMs) / 1000);
    return seconds < 1 ? (this.#text ?? "") : `${this.#text}, ${seconds} s`;
  }

  /** A line that was drawn on a wider terminal has more than one row on one that is narrow now. */
  #clear(): void {
    if (this.#drawn === 0) return;
    const rows = Math.ceil(this.#drawn / (this.#stream.columns || 80));
    this.#stream.write(`\r\u001b[2K${"\u001b[1A\u001b[2K".repeat(rows - 1)}`);
    this.#drawn = 0;
  }
}
