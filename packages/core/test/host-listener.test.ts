/** The listener of a host, on a path of this machine. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { HostListener } from "../src/host/channels/host-listener.ts";

test("a host that could not listen once listens when the cause is gone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-listener-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "later", "host");
  const listener = new HostListener({
    hostId: "host-x",
    address: { place: { path }, token: "token" },
    network: {},
    death: () => new Promise(() => undefined),
    onChannel: () => undefined,
  });
  const both = [listener.address(), listener.address()];
  for (const one of await Promise.allSettled(both)) expect(one.status).toBe("rejected");
  await mkdir(join(folder, "later"));
  expect((await listener.address()).place).toEqual({ path });
  expect(await listener.address()).toBe(await listener.address());
});
