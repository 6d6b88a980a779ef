import { afterEach, expect, test, vi } from "vitest";
import { notePath, warnOfCopies } from "../src/protocol/values/live-memory.ts";
import { allocateShared } from "../src/protocol/shared-memory.ts";

afterEach(() => void vi.unstubAllEnvs());

test("memory of the user's own that becomes a copy is said once, with its path, and not in production", () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const own = new SharedArrayBuffer(8);
  vi.stubEnv("NODE_ENV", "production");
  notePath(own, () => expect.fail("nobody asks where it is"));
  warnOfCopies([own]);
  expect(warn).not.toHaveBeenCalled();
  vi.stubEnv("NODE_ENV", "test");
  warnOfCopies([allocateShared(8)]);
  expect(warn).not.toHaveBeenCalled();
  notePath(own, () => "args[0].cell");
  notePath(own, () => expect.fail("it is known where it is"));
  warnOfCopies([allocateShared(8), own]);
  warnOfCopies([own]);
  expect(warn).toHaveBeenCalledOnce();
  expect(warn.mock.calls[0]).toEqual([
    expect.stringMatching(/^args\[0\]\.cell contains a SharedArrayBuffer and goes to another/),
    { type: "RaylingWarning" },
  ]);
});
