/**
 * Shows the progress of a run on stderr: a redrawn bar on a terminal, plain lines elsewhere. Stdout
 * stays free for the result.
 */

import type { WriteStream } from "node:tty";
import type { EndpointState, RewardModelState, RewardProgress } from "@rayling/reward-loop";
import { duration, grouped, span } from "./numbers.ts";
import { plain } from "./output.ts";
import { capText } from "../score/score-report.ts";

/** A shorter time is over before its line is read, in ms. */
const leastLeftMs = 3000;

/** Columns of the bar: an eighth of the line, within these. */
const barColumns = { least: 8, most: 24 };

/** Progress, with the mean of the scores so far; undefined: there are none. */
export interface ShownProgress extends RewardProgress {
  readonly meanScore?: number | undefined;
}

/** Shows the progress of one run. */
export interface RunView {
  /** How often, in ms, it can be shown. */
  readonly everyMs: number;
  show(progress: ShownProgress): void;
  close(): void;
}

export class ProgressView implements RunView {
  readonly #stream: WriteStream;
  #isOpen = false;
  #hasSaidLeft = false;

  constructor(stream: WriteStream = process.stderr) {
    this.#stream = stream;
  }

  /** A terminal is redrawn ten times a second; a log gets a line before two seconds are over. */
  get everyMs(): number {
    return this.#stream.isTTY ? 100 : 1500;
  }

  /** Whether there is one line that is drawn again. */
  get isRedrawn(): boolean {
    return this.#stream.isTTY;
  }

  show(progress: ShownProgress): void {
    this.#write([["", progress]]);
  }

  /** Shows several runs by name in one line. */
  showNamed(runs: readonly (readonly [name: string, progress: ShownProgress])[]): void {
    this.#write(runs);
  }

  /** On a terminal each run has its share of the line. */
  #write(runs: readonly (readonly [name: string, progress: ShownProgress])[]): void {
    const columns = (this.#stream.columns || 80) - 1;
    const isDrawn = this.#stream.isTTY;
    const drawn = isDrawn ? `${bar(runs, columns)} ` : "";
    const separators = separator.length * (runs.length - 1);
    const share = Math.floor((columns - drawn.length - separators) / runs.length);
    const texts = runs.map(([name, progress]) => {
      const named = name === "" ? "" : `${plain(name)}: `;
      const parts = progressParts(progress).map((part) => plain(part));
      return isDrawn ? fitted(named, parts, share) : `${named}${parts.join(", ")}`;
    });
    const text = texts.join(separator);
    if (!isDrawn) {
      this.#stream.write(`${text}\n`);
      return;
    }
    this.#stream.write(`\r\u001b[2K${this.#leftLine(runs)}${`${drawn}${text}`.slice(0, columns)}`);
    this.#isOpen = true;
  }

  /** Says once how long it will go on, in a line that stays, if that is long enough to wait for. */
  #leftLine(runs: readonly (readonly [name: string, progress: ShownProgress])[]): string {
    const leftMs = Math.max(...runs.map(([, one]) => one.leftMs ?? 0));
    if (this.#hasSaidLeft || leftMs < leastLeftMs) return "";
    this.#hasSaidLeft = true;
    return `about ${span(leftMs)} left\n`;
  }

  /** Leaves the last state on the screen. */
  close(): void {
    if (this.#isOpen) this.#stream.write("\n");
    this.#isOpen = false;
  }
}

const separator = " | ";

/** The first part matters most; parts that do not fit whole are left out. */
function fitted(named: string, [first = "", ...more]: readonly string[], columns: number): string {
  let line = `${named}${first}`;
  for (const part of more) {
    if (line.length + part.length + 2 > columns) break;
    line += `, ${part}`;
  }
  return line;
}

function progressParts(progress: ShownProgress): string[] {
  const { done, total, inFlight, ratePerSecond, leftMs, oldestMs, meanScore } = progress;
  const { spent, spending, endpoints, rewardModels } = progress;
  // The cap of all functions shows it, too.
  const isSaid = spent === 0 || spending.some(({ name }) => name === "");
  return [
    `${grouped(done)}${total === undefined ? "" : ` / ${grouped(total)}`}`,
    ...(leftMs === undefined || leftMs === 0 ? [] : [`${span(leftMs)} left`]),
    ...(meanScore === undefined ? [] : [`mean score ${meanScore.toFixed(3)}`]),
    ...invalidText(progress),
    `${grouped(inFlight)} in flight`,
    `${grouped(Math.round(ratePerSecond))}/s`,
    `oldest call ${duration(oldestMs)}`,
    ...endpoints.flatMap((one) => endpointText(one, endpoints.length > 1)),
    ...Object.entries(rewardModels).flatMap(([name, one]) => modelText(name, one)),
    ...(isSaid ? [] : [`${spent.toFixed(4)} spent`]),
    ...spending.map(capText),
  ];
}

function invalidText({ invalid, failures }: RewardProgress): string[] {
  if (invalid === 0) return [];
  const all = Object.entries(failures);
  const kinds = all.map(([kind, count]) => (all.length === 1 ? kind : `${grouped(count)} ${kind}`));
  return [`${grouped(invalid)} invalid (${kinds.join(", ")})`];
}

/** Describes the used part of limits. */
function endpointText(state: EndpointState, isNamed: boolean): string[] {
  const { endpoint, inFlight, limit, requests, tokens, refused, breaker } = state;
  const parts = [
    ...(Number.isFinite(limit) ? [`${grouped(inFlight)} of ${grouped(limit)} calls`] : []),
    ...(requests === undefined ? [] : [`${usedOf(requests)} requests/min`]),
    ...(tokens === undefined ? [] : [`${usedOf(tokens)} tokens/min`]),
    ...(refused === 0 ? [] : [`${grouped(refused)} refused`]),
    ...(breaker === undefined || breaker === "closed" ? [] : [`breaker ${breaker}`]),
  ];
  return parts.length === 0 ? [] : [`${isNamed ? `${endpoint}: ` : ""}${parts.join(", ")}`];
}

/** Nothing of a reward model that is well. */
function modelText(name: string, { state, servers }: RewardModelState): string[] {
  if (state === "failed") return [`${name}: did not wake up`];
  const out = servers.filter(({ isOut }) => isOut).length;
  return out === 0 ? [] : [`${name}: ${grouped(out)} of ${grouped(servers.length)} servers out`];
}

function usedOf({ used, limit }: { readonly used: number; readonly limit: number }): string {
  return `${grouped(Math.round(used))} of ${grouped(limit)}`;
}

function bar(runs: readonly (readonly [name: string, RewardProgress])[], columns: number): string {
  const { least, most } = barColumns;
  const length = Math.max(least, Math.min(most, Math.floor(columns / 8)));
  const done = runs.reduce((sum, [, one]) => sum + one.done, 0);
  const total = runs.reduce((sum, [, one]) => sum + (one.total ?? 0), 0);
  const filled = total === 0 ? 0 : Math.floor((length * done) / total);
  return `[${"#".repeat(filled)}${"-".repeat(length - filled)}]`;
}
