import { afterEach, expect, test } from "vitest";
import { findRemote, registerRemote } from "../src/host/code/registry.ts";
import { setCodeRoots } from "../src/shared/code-roots.ts";

class Line {
  length(): number {
    return 0;
  }
}

afterEach(() => setCodeRoots([]));

test("a named remote that registered before the driver's places were known is found by the driver's URL", () => {
  const here = "file:///opt/rayling/core/dist/api/patterns/line.js";
  registerRemote(Line, "Line", 0, { moduleUrl: here, exportName: "LineClass" });
  const key = {
    moduleUrl: "file:///home/user/node_modules/@rayling/core/dist/api/patterns/line.js",
    name: "Line",
    exportName: "LineClass",
  };
  expect(findRemote(key)).toBeUndefined();
  setCodeRoots([
    { driver: "file:///home/user/node_modules/@rayling/core/", here: "file:///opt/rayling/core/" },
  ]);
  expect(findRemote(key)).toEqual({ target: Line });
  expect(findRemote({ ...key, exportName: "OtherClass" })).toBeUndefined();
});
