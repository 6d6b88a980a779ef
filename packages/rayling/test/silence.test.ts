/** What is said while a command's thread is busy. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { shown, startNode } from "./command.ts";

const busy = fileURLToPath(new URL("./fixtures/busy-command.ts", import.meta.url));

/** Lets it go on when it has said what is wanted. Returns all that it wrote. */
async function written(wanted: RegExp, ...args: readonly string[]): Promise<string> {
  const command = startNode(busy, ...args);
  let text = "";
  command.child.stderr?.on("data", (chunk: string) => (text += chunk));
  await shown(command, wanted, "stderr");
  command.child.stdin?.end();
  expect(await command.ended).toMatchObject({ code: 0, stdout: "" });
  return text;
}

test("a reader of a pipe is told again and again what goes on, in lines, whatever the wall clock says", async () => {
  const text = await written(/(?:\.\.\. .*\n[^]*){2}/);
  expect(text).toMatch(
    /^(?: {2}\.\.\. loading the modules of a command that is long(?: \(\d{1,4} s so far\))?\n){2,}a line of its own\n$/,
  );
});

test("a terminal shows it on one line, which fits, and is gone when something is written", async () => {
  const text = await written(/\r[^]*\r/, "terminal");
  // oxlint-disable-next-line no-control-regex
  expect(text).toMatch(/^(?:\r\u001b\[2K[^\r\n]{1,39})+\r\u001b\[2Ka line of its own\n$/);
});

test("text of others takes the place of a line that is drawn again", async () => {
  const text = await written(/loading/, "terminal", "[###---] 3 of 6");
  expect(text.endsWith("\r\u001b[2Ka line of its own\n")).toBe(true);
});

test("what goes on is said at once where that is asked for, in a pipe and on a terminal", async () => {
  const piped = await written(/long\n/, "at once");
  expect(piped).toMatch(/^ {2}\.\.\. loading the modules of a command that is long\n/);
  const drawn = await written(/long/, "terminal", "at once");
  expect(drawn).toContain("\r\u001b[2Kloading the modules of a command that is long");
  expect(drawn.endsWith("\r\u001b[2Ka line of its own\n")).toBe(true);
});
