import util from "node:util";
import { afterEach, expect, test, vi } from "vitest";
import { findRemote, registerRemote } from "../src/host/code/registry.ts";
import { setCodeRoots } from "../src/shared/code-roots.ts";

class Line {
  length(): number {
    return 0;
  }
}

const maker = Object.getOwnPropertyDescriptor(Error, "prepareStackTrace");

afterEach(() => {
  setCodeRoots([]);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  Reflect.deleteProperty(Error, "prepareStackTrace");
  if (maker !== undefined) Object.defineProperty(Error, "prepareStackTrace", maker);
});

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

test("a remote of another runtime, where calls have no places, says which one that is", () => {
  vi.spyOn(util, "getCallSites").mockReturnValue([
    { scriptName: undefined } as unknown as util.CallSiteObject,
  ]);
  // Calls are looked for the other way where a program shows stacks in its own way.
  Error.prepareStackTrace = () => "";
  expect(() => registerRemote(Line, "Line", 0, undefined)).toThrow(
    "was not called in a module file",
  );
  vi.stubGlobal("process", { ...process, versions: { ...process.versions, bun: "1.4.5" } });
  expect(() => registerRemote(Line, "Line", 0, undefined)).toThrow(
    "rayling runs on Node, and this is Bun 1.4.5",
  );
});
