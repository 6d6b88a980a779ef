/**
 * Shows the progress of a run on stderr: a redrawn bar on a terminal, plain lines elsewhere. Stdout
 * stays free for the result.
 */

import type { WriteStream } from "node:tty";
import type { EndpointState, RewardModelState, RewardProgress } from "@rayling/reward-loop";
import { duration, grouped, span } from "./numbers.ts";
import { plain } from "./output.ts";
import { capText } from "../score/score-report.ts";

const BAR_COLUMNS = 24;

/** Shows the progress of one run. */
export interface RunView {
  /** How often, in ms, it can be shown. */
  readonly everyMs: number;
  show(progress: RewardProgress): void;
  close(): void;
}

export class ProgressView implements RunView {
  readonly #stream: WriteStream;
  #isOpen = false;

  constructor(stream: WriteStream = process.stderr) {
    this.#stream = stream;
  }

  /** A terminal is redrawn ten times a second; a log gets a line every two seconds. */
  get everyMs(): number {
    return this.#stream.isTTY ? 100 : 2000;
  }

  /** Whether there is one line that is drawn again. */
  get isRedrawn(): boolean {
    return this.#stream.isTTY;
  }

  show(progress: RewardProgress): void {
    this.#write(bar([progress]), progressText(progress));
  }

  /** Shows several runs by name in one line. */
  showNamed(runs: readonly (readonly [name: string, progress: RewardProgress])[]): void {
    const texts = runs.map(([name, progress]) => `${name}: ${progressText(progress)}`);
    this.#write(bar(runs.map(([, progress]) => progress)), texts.join(" | "));
  }

  #write(drawn: string, said: string): void {
    const text = plain(said);
    if (!this.#stream.isTTY) {
      this.#stream.write(`${text}\n`);
      return;
    }
    const line = `${drawn} ${text}`;
    this.#stream.write(`\r\u001b[2K${line.slice(0, this.#stream.columns - 1)}`);
    this.#isOpen = true;
  }

  /** Leaves the last state on the screen. */
  close(): void {
    if (this.#isOpen) this.#stream.write("\n");
    this.#isOpen = false;
  }
}

function progressText(progress: RewardProgress): string {
  const { done, total, inFlight, ratePerSecond, leftMs, oldestMs } = progress;
  const { spent, spending, endpoints, rewardModels } = progress;
  // The cap of all functions shows it, too.
  const isSaid = spent === 0 || spending.some(({ name }) => name === "");
  const parts = [
    `${grouped(done)}${total === undefined ? "" : ` / ${grouped(total)}`}`,
    `${grouped(inFlight)} in flight`,
    `${grouped(Math.round(ratePerSecond))}/s`,
    ...(leftMs === undefined || leftMs === 0 ? [] : [`${span(leftMs)} left`]),
    `oldest ${duration(oldestMs)}`,
    ...invalidText(progress),
    ...endpoints.flatMap((one) => endpointText(one, endpoints.length > 1)),
    ...Object.entries(rewardModels).flatMap(([name, one]) => modelText(name, one)),
    ...(isSaid ? [] : [`${spent.toFixed(4)} spent`]),
    ...spending.map(capText),
  ];
  return parts.join(", ");
}

function invalidText({ invalid, failures }: RewardProgress): string[] {
  if (invalid === 0) return [];
  const kinds = Object.entries(failures).map(([kind, count]) => `${grouped(count)} ${kind}`);
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

function bar(runs: readonly RewardProgress[]): string {
  const done = runs.reduce((sum, one) => sum + one.done, 0);
  const total = runs.reduce((sum, one) => sum + (one.total ?? 0), 0);
  const filled = total === 0 ? 0 : Math.floor((BAR_COLUMNS * done) / total);
  return `[${"#".repeat(filled)}${"-".repeat(BAR_COLUMNS - filled)}]`;
}
