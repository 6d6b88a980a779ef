import { expect, test } from "vitest";
import { isLoopback, isUnspecified } from "../src/shared/machine/loopback.ts";
import {
  machineMemory,
  standardMemory,
  standardObjectStoreMemory,
} from "../src/shared/machine/default-memory.ts";

test.each([
  ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "0:0:0:0:0:0:0:1"],
  ["::ffff:127.0.0.1", "::FFFF:7f00:1", "::1%lo"],
])("an address that only its own machine reaches is known however it is written", (...hosts) => {
  expect(hosts.filter((host) => !isLoopback(host))).toEqual([]);
});

test("other addresses and names are reached from elsewhere", () => {
  const hosts = ["10.0.0.7", "::2", "fd00::1", "128.0.0.1", "127.example", "*.example", "", "::"];
  expect(hosts.filter(isLoopback)).toEqual([]);
  const all = ["0.0.0.0", "::", "0:0:0:0:0:0:0:0", "[::]", "::ffff:0.0.0.0"];
  expect([...all, ...hosts, "::1"].filter(isUnspecified)).toEqual([...all, "::"]);
});

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
