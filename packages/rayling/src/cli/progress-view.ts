/** Shows how far a run is, on stderr: a bar that is redrawn on a terminal, plain lines elsewhere. Stdout is left to the result. */

import type { WriteStream } from "node:tty";
import type { RewardProgress } from "@rayling/reward-loop";
import { grouped, duration } from "./numbers.ts";
import { capText } from "./score-report.ts";

const BAR_COLUMNS = 24;

export class ProgressView {
  readonly #stream: WriteStream;
  #isOpen = false;

  constructor(stream: WriteStream = process.stderr) {
    this.#stream = stream;
  }

  /** A terminal is redrawn ten times a second; a log gets a line every two seconds. */
  get everyMs(): number {
    return this.#stream.isTTY ? 100 : 2000;
  }

  show(progress: RewardProgress): void {
    if (!this.#stream.isTTY) {
      this.#stream.write(`${progressText(progress)}\n`);
      return;
    }
    const line = `${bar(progress)} ${progressText(progress)}`;
    this.#stream.write(`\r\u001b[2K${line.slice(0, this.#stream.columns - 1)}`);
    this.#isOpen = true;
  }

  /** Leaves the last state standing. */
  close(): void {
    if (this.#isOpen) this.#stream.write("\n");
    this.#isOpen = false;
  }
}

function progressText(progress: RewardProgress): string {
  const { done, total, inFlight, ratePerSecond, oldestMs, invalid, spending } = progress;
  const parts = [
    `${grouped(done)}${total === undefined ? "" : ` / ${grouped(total)}`}`,
    `${grouped(inFlight)} in flight`,
    `${grouped(Math.round(ratePerSecond))}/s`,
    `oldest ${duration(oldestMs)}`,
    ...(invalid === 0 ? [] : [`${grouped(invalid)} invalid`]),
    ...spending.map(capText),
  ];
  return parts.join(", ");
}

function bar({ done, total }: RewardProgress): string {
  const filled = total === undefined ? 0 : Math.floor((BAR_COLUMNS * done) / total);
  return `[${"#".repeat(filled)}${"-".repeat(BAR_COLUMNS - filled)}]`;
}
