/**
 * The current phase of a command that has no progress of its own: on a terminal one line that is
 * drawn again, with the time that it takes; elsewhere a line for each change, and one that says
 * that it goes on before two seconds are over without output.
 */
import type { WriteStream } from "node:tty";
import { plain } from "./output.ts";
import { goingOn, pipedLine } from "./silence/shared-line.ts";
import type { Silence } from "./silence/silence.ts";

const everyMs = 1000;
/** Elsewhere than on a terminal. */
const quietMs = 1600;

export class PhaseLine implements Disposable {
  readonly #stream: WriteStream;
  readonly #silence: Silence | undefined;
  readonly #ticking: NodeJS.Timeout;
  #text: string | undefined;
  #sinceMs = 0;
  #writtenMs = performance.now();
  /** Length of the line that is drawn. */
  #drawn = 0;

  /** @param silence says what goes on while this thread is busy */
  constructor(stream: WriteStream = process.stdout, silence?: Silence) {
    this.#stream = stream;
    this.#silence = silence;
    this.#ticking = setInterval(() => this.#tick(), stream.isTTY ? everyMs : 100).unref();
  }

  /** Shows what is done now. */
  show(text: string): void {
    this.#begin(text);
    if (this.#stream.isTTY) this.#draw();
    else this.say(text);
  }

  /** Shows what is done now on a terminal; elsewhere it is said if it takes long. */
  begin(text: string): void {
    this.#begin(text);
    if (this.#stream.isTTY) this.#draw();
  }

  /** Shows, as `begin`, how far it is; its time goes on. */
  goOn(text: string): void {
    this.#begin(text, this.#sinceMs);
    if (this.#stream.isTTY) this.#draw();
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

  /** Something was written. @param doing what goes on from now; nothing was written */
  touch(doing?: string): void {
    if (doing === undefined) this.#writtenMs = performance.now();
    else this.#begin(doing);
  }

  /**
   * Takes the line away.
   *
   * @param doing what something else shows that is going on; it is said here while this thread is
   * too busy for that
   */
  pause(doing?: string): void {
    this.#clear();
    this.#text = undefined;
    this.#silence?.doing(doing, this.#stream);
  }

  [Symbol.dispose](): void {
    this.pause();
    clearInterval(this.#ticking);
  }

  #begin(text: string, sinceMs = performance.now()): void {
    this.#text = text;
    this.#sinceMs = sinceMs;
    this.#silence?.doing(plain(text), this.#stream, performance.now() - sinceMs);
  }

  #tick(): void {
    if (this.#text === undefined) return;
    if (this.#stream.isTTY) this.#draw();
    else if (this.#quietMs >= quietMs) this.say(pipedLine(this.#line()));
  }

  get #quietMs(): number {
    const ownMs = performance.now() - this.#writtenMs;
    return Math.min(ownMs, this.#silence?.quietMs ?? ownMs);
  }

  #draw(): void {
    this.#clear();
    const line = plain(this.#line()).slice(0, (this.#stream.columns || 80) - 1);
    this.#stream.write(`\r\u001b[2K${line}`);
    this.#drawn = line.length;
  }

  #line(): string {
    return goingOn(this.#text ?? "", performance.now() - this.#sinceMs);
  }

  /** A line that was drawn on a wider terminal has more than one row on one that is narrow now. */
  #clear(): void {
    if (this.#drawn === 0) return;
    const rows = Math.ceil(this.#drawn / (this.#stream.columns || 80));
    this.#stream.write(`\r\u001b[2K${"\u001b[1A\u001b[2K".repeat(rows - 1)}`);
    this.#drawn = 0;
  }
}
