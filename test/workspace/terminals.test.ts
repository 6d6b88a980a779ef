/** Packages write to terminals through the one file that knows what a terminal obeys. */
import { expect, test } from "vitest";
import { sourceFiles } from "./source.ts";

const files = sourceFiles("packages/*/src/**/*.ts");

const filesWith = (wanted: RegExp): string[] =>
  files
    .map(({ path, text }) => ({ path, code: text.replaceAll(/\/\*[\s\S]*?\*\//g, "") }))
    .filter(({ code }) => wanted.test(code))
    .map(({ path }) => path);

test("the process is warned in one way", () => {
  expect(filesWith(/process\.emitWarning\(/)).toEqual([
    "packages/core/src/shared/text/warning.ts",
    // Knows nothing of core, and says nothing that others wrote.
    "packages/reward-manager-registry/src/sandbox/program-run.ts",
  ]);
});

test("stdout and stderr are written to by the command's output, and by the driver for its hosts", () => {
  expect(filesWith(/process(?:\.std(?:out|err)|\[stream\])\.write\(/)).toEqual([
    "packages/core/src/runtime/observe/host-logs.ts",
    "packages/rayling/src/cli/output/output.ts",
    // Data for the process that started it.
    "packages/rayling/src/python/certificate-main.ts",
    // Programs that are sent to a sandbox have it in their text.
    "packages/reward-manager-registry/src/scorers/code/service-caller.ts",
  ]);
});

test("nobody else writes to the console", () => {
  // Programs that are sent to a sandbox have it in their text.
  // On a Node that is too old for the rest, nothing of the rest is there.
  expect(filesWith(/^(?!.*`).*\bconsole\.(?:log|error|warn|info|debug)\(/m)).toEqual([
    "packages/rayling/src/cli/main.ts",
    // The output of processes that Python starts goes to Python's logging.
    "packages/rayling/src/python/actor-host/main.ts",
    "packages/rayling/src/python/message-socket.ts",
    "packages/reward-manager-registry/src/scorers/code/service-caller.ts",
  ]);
});

test("who writes to a stream that is given takes what others wrote through that file", () => {
  const writers = filesWith(/this\.#stream\.write\(/);
  expect(writers.length).toBeGreaterThan(0);
  // Data for programs: who gives it the stream looks after terminals (packages/rayling/src/cli/output/output.ts).
  const data = "packages/data-proto/src/jsonl/line-stream.ts";
  const without = writers.filter((path) => {
    if (path === data) return false;
    const { text } = files.find((file) => file.path === path) ?? { text: "" };
    return !/terminalLine|\bplain\b/.test(text);
  });
  expect(without).toEqual([]);
});
