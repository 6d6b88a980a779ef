/**
 * Gives modules in a host the driver's view of the program: its arguments and its title. A module
 * that reads its arguments at its top level thus does the same in both.
 *
 * The values are set inside the process: real arguments would be visible in process lists. Flags of
 * Node stay the host's own, because child processes may inherit them, permissions included.
 */
import type { Program } from "../host-control.ts";
import { hasTests, leaveTestsOut } from "./test-files.ts";

export function takeProgram({ argv, title, isTest }: Program): void {
  if (isTest) leaveTestsOut();
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
  return { argv: process.argv, title: process.title, isTest: hasTests() };
}
