/**
 * Runs lines of a test in a process of their own, the judge. Calls of the program run in the
 * program's process, and the judge compares the results. Each process has walls of its own, and
 * this process carries their messages: neither reaches the other's memory, files or descriptors.
 */

import type { Duplex } from "node:stream";
import type { ChildEnd } from "./confined-child.ts";
import { runProgram } from "./program-run.ts";
import type { RunRequest } from "./program-run.ts";

export interface JudgedEnd {
  readonly program: ChildEnd;
  readonly judge: ChildEnd;
}

/** Rejects as runProgram does; the other one of the two is ended then. */
export async function runJudged(
  request: Omit<RunRequest, "part" | "talk">,
  test: string,
): Promise<JudgedEnd> {
  const { signal, limits } = request;
  const failed = new AbortController();
  const either = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  const ours = new Meeting(limits.maxOutputBytes);
  const run = (
    more: Pick<RunRequest, "part" | "code">,
    talk: (channel: Duplex) => void,
  ): Promise<ChildEnd> =>
    runProgram({ ...request, ...more, talk, signal: either }).catch((error: unknown) => {
      failed.abort(error);
      throw error;
    });
  const both = await Promise.allSettled([
    run({ part: { kind: "server" }, code: request.code }, (channel) => ours.program(channel)),
    run({ part: { kind: "judge" }, code: test }, (channel) => ours.judge(channel)),
  ]);
  const [program, judge] = both;
  signal?.throwIfAborted();
  if (program.status === "rejected" || judge.status === "rejected") throw failed.signal.reason;
  return { program: program.value, judge: judge.value };
}

/**
 * Carries messages both ways once both are there, each on a line; one of the program may be as long
 * as its output may be. There is no limit for all together: a list that is kept the same on both
 * sides is in the message of each change.
 */
class Meeting {
  readonly #program = Promise.withResolvers<Duplex>();
  readonly #judge = Promise.withResolvers<Duplex>();
  readonly program = (channel: Duplex): void => this.#program.resolve(heldOpen(channel));
  readonly judge = (channel: Duplex): void => this.#judge.resolve(heldOpen(channel));

  constructor(maxBytes: number) {
    void Promise.all([this.#program.promise, this.#judge.promise]).then(([program, judge]) => {
      this.#carry(program, judge, maxBytes);
      // The test is no program's output: what it passes may be larger.
      this.#carry(judge, program, Infinity);
    });
  }

  #carry(from: Duplex, to: Duplex, maxBytes: number): void {
    // So many of the message that has begun.
    let bytes = 0;
    from.on("data", (chunk: Buffer) => {
      const end = chunk.lastIndexOf("\n");
      bytes = end === -1 ? bytes + chunk.length : chunk.length - end - 1;
      if (bytes > maxBytes) {
        from.destroy();
        to.destroy();
      } else if (!to.write(chunk)) {
        from.pause();
        to.once("drain", () => from.resume());
      }
    });
    const end = (): void => void to.end();
    if (from.destroyed || from.readableEnded) end();
    from.once("close", end);
    from.once("end", end);
  }
}

/** The process that owned a closed end reports it. */
function heldOpen(channel: Duplex): Duplex {
  return channel.on("error", () => undefined);
}
