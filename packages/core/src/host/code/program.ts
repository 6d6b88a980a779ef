/**
 * What a module reads of the program that it belongs to is in a host what it is in the driver: its arguments, its title. A module that reads its arguments at
 * its top level thus does the same in both.
 *
 * Set inside the process: as arguments of its own, whoever lists processes would see them. Flags of Node are the host's own, because what it starts may inherit them:
 * its permissions are among them.
 */
import type { Program } from "../control.ts";
import { hasTests, leaveTestsOut } from "./test-files.ts";

export function takeProgram({ argv, title, isTest }: Program): void {
  if (isTest) leaveTestsOut();
  process.argv = [...argv];
  // Lists of processes show what it was given before.
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
