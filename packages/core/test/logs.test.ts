import { expect, test } from "vitest";
import { LineMarker, readMark } from "../src/host/output.ts";
import { LogPrinter } from "../src/runtime/observe/log-printer.ts";

function printer(): {
  readonly logs: LogPrinter;
  readonly shown: string[];
  readonly tick: (ms: number) => void;
} {
  const shown: string[] = [];
  let now = 0;
  const logs = new LogPrinter({
    write: (stream, text) => void shown.push(`${stream}:${text}`),
    now: () => now,
  });
  return { logs, shown, tick: (ms) => void (now += ms) };
}

test("parts of a line are joined, for each writer and stream by itself", () => {
  const { logs, shown } = printer();
  logs.text("host-1", "stdout", "A", "one ");
  logs.text("host-1", "stdout", "B", "other\n");
  logs.text("host-1", "stderr", "A", "loud\r\n");
  logs.text("host-1", "stdout", "A", "line\nrest");
  expect(shown).toEqual([
    "stdout:(B host-1) other\n",
    "stderr:(A host-1) loud\n",
    "stdout:(A host-1) one line\n",
  ]);
  logs.hostEnded("host-1");
  expect(shown.at(-1)).toBe("stdout:(A host-1) rest\n");
});

test("a host that repeats itself is shown each time; others that repeat it are counted for 5 seconds", () => {
  const { logs, shown, tick } = printer();
  for (const host of ["host-1", "host-1", "host-2", "host-3", "host-1"]) {
    logs.line(host, "stdout", "A", "same");
  }
  expect(shown).toEqual(["stdout:(A host-1) same\n", "stdout:(A host-1) same\n"]);
  tick(5001);
  logs.line("host-9", "stdout", "", "else");
  expect(shown.slice(2)).toEqual([
    "stdout:(A host-1) same [repeated 3x across cluster]\n",
    "stdout:(host-9) else\n",
  ]);
  // It was worth while, so the counting goes on.
  logs.line("host-4", "stdout", "A", "same");
  expect(shown).toHaveLength(4);
  logs.close();
  expect(shown.at(-1)).toBe("stdout:(A host-4) same\n");
});

test("one repetition is shown as it is, and the same text on the other stream is another line", () => {
  const { logs, shown, tick } = printer();
  logs.line("host-1", "stdout", "A", "same");
  logs.line("host-2", "stdout", "A", "same");
  logs.line("host-2", "stderr", "A", "same");
  tick(6000);
  logs.line("host-3", "stdout", "A", "next");
  expect(shown).toEqual([
    "stdout:(A host-1) same\n",
    "stderr:(A host-2) same\n",
    "stdout:(A host-2) same\n",
    "stdout:(A host-3) next\n",
  ]);
});

test("ten thousand different lines are all shown, and few are remembered", () => {
  const { logs, shown } = printer();
  for (let line = 0; line < 10_000; line++) logs.line("host-1", "stdout", "", `${line}`);
  logs.line("host-2", "stdout", "", "9999");
  logs.line("host-2", "stdout", "", "0");
  expect(shown).toHaveLength(10_001);
  expect(shown.at(-1)).toBe("stdout:(host-2) 0\n");
});

test("marks say who wrote a line, through any cut of the text", () => {
  const marker = new LineMarker();
  const text = [
    marker.mark("A", "one\ntw"),
    marker.mark("A", "o\n"),
    marker.mark("B", "three"),
    marker.mark("A", "four\n\n"),
  ].join("");
  expect(text.split("\n").map(readMark)).toEqual([
    { owner: "A", text: "one" },
    { owner: "A", text: "two" },
    { owner: "B", text: "three" },
    { owner: "A", text: "four" },
    { owner: "A", text: "" },
    { owner: "", text: "" },
  ]);
});
