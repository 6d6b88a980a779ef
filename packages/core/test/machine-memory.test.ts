import { expect, test } from "vitest";
import {
  machineMemory,
  standardMemory,
  standardObjectStoreMemory,
} from "../src/shared/machine/default-memory.ts";

test.each([
  ["no container", 0, 1000],
  ["a container without a limit", 2 ** 64, 1000],
  ["a container with one above the machine", 5000, 1000],
  ["a container with one", 300, 300],
])("in %s memory is the smaller of what is limited and what is there", (_, limit, memory) => {
  expect(machineMemory(limit, 1000)).toBe(memory);
});

test("its parts are whole bytes, and not more than all of it", () => {
  expect(standardMemory(1001)).toBe(700);
  expect(standardObjectStoreMemory(1001)).toBe(300);
});
