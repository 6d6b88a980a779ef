/**
 * Gives modules in a host the driver's view of the program: its arguments and its title. A module
 * that reads its arguments at its top level thus does the same in both.
 *
 * The values are set inside the process: real arguments would be visible in process lists. Flags of
 * Node stay the host's own, because child processes may inherit them, permissions included.
 */
import type { Program } from "../host-control.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import { leaveTestsOut } from "./test-files.ts";
import { watchFilePromises } from "./top-level.ts";

/** Node loads what static imports name before it runs any module, this one included. */
const used: { filePromises: boolean } = threadSlot("used-modules", () => ({
  filePromises: hasLoaded("internal/fs/promises"),
}));

/** Looks at the program before this package loads modules that only a session needs. */
export function noteUsedModules(): void {
  used.filePromises ||= hasLoaded("internal/fs/promises");
}

/** Node lists its built-in modules that are loaded. */
function hasLoaded(builtIn: string): boolean {
  const { moduleLoadList } = process as { readonly moduleLoadList?: readonly string[] };
  return moduleLoadList?.includes(`NativeModule ${builtIn}`) ?? false;
}

export function takeProgram({ argv, title, isTest, usesFilePromises: watches }: Program): void {
  if (isTest) leaveTestsOut();
  if (watches) watchFilePromises();
  process.argv = [...argv];
  // Process lists show the earlier title.
  const given = Object.getOwnPropertyDescriptor(process, "title");
  Object.defineProperty(process, "title", {
    configurable: true,
    enumerable: true,
    get: () => title,
    set: (value: string) => {
      title = value;
      given?.set?.call(process, title);
    },
  });
}

export function ownProgram(): Program {
  return {
    argv: process.argv,
    title: process.title,
    isTest: hasLoaded("test"),
    usesFilePromises: used.filePromises,
  };
}
