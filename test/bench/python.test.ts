/** What is said when the Python that verl's reward loop asks for is not there, or not of use. */
import { expect, test } from "vitest";
import { flagsOf } from "../../bench/flags.ts";
import { VerlLoop } from "../../bench/verl/loop.ts";

test("a Python is taken for the rewards alone", () => {
  expect(flagsOf(["--only", "rewards", "--python", "python"]).python).toBe("python");
  expect(() => flagsOf(["--python", "python"])).toThrow("--only rewards");
});

test("a Python that is not there is told in one line", async () => {
  const error = await VerlLoop.start("/nowhere/python").catch((cause: unknown) => cause);
  expect(error).toMatchObject({ code: "NO_RAY" });
  expect((error as Error).message).toMatch(/^--python \/nowhere\/python: cannot import .+$/);
});
