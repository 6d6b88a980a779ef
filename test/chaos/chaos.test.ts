/**
 * Many actors under a random mix of calls, kills, exits, heap limits, cancellations and restarts, session after session in one process: every promise settles,
 * every result is the model's, no thread and no process is left (test/fixtures/drivers/chaos.ts), and no memory.
 *
 * RAYLING_CHAOS_SEED and RAYLING_CHAOS_MS choose another run; a failure names its seed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { sized } from "../fixtures/suite.ts";

const seed = Number(process.env["RAYLING_CHAOS_SEED"] ?? 20_261_121);
const durationMs = Number(process.env["RAYLING_CHAOS_MS"] ?? sized({ gate: 1500, full: 7000 }));
const driver = fileURLToPath(new URL("../fixtures/drivers/chaos.ts", import.meta.url));
const sessions = sized({ gate: 1, full: 3 });
const actors = sized({ gate: 24, full: 200 });
let running: ChildProcess | undefined;

afterAll(() => void running?.kill("SIGKILL"));

test(
  `chaos leaves nothing behind, and nobody waiting (seed ${seed})`,
  async () => {
    const args = ["--expose-gc", driver, ...[seed, durationMs, sessions, actors].map(String)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    running = child;
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
    const lines = said.split("\n").filter((line) => /^(session|\[)/.test(line));
    console.log(lines.join("\n"));
    expect(code).toBe(0);
    const [, second, third] = JSON.parse(lines.at(-1) ?? "") as number[];
    if (second === undefined || third === undefined) return;
    // What is loaded, compiled and made once for all is there by the second; what is left of each call and each actor comes again.
    expect(third).toBeLessThan(1.05 * second);
  },
  sessions * (durationMs + 150_000),
);
