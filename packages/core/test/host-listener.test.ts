/** The listener of a host, on a path of this machine. */
import { mkdir, mkdtemp, rm, rmdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { HostListener } from "../src/host/channels/host-listener.ts";

function listenerAt(path: string): HostListener {
  return new HostListener({
    hostId: "host-x",
    address: { place: { path }, token: "token" },
    network: {},
    death: () => new Promise(() => undefined),
    onChannel: () => undefined,
  });
}

test("a host makes the folder of its socket where a cleaner has removed it, for its user alone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-listener-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await rmdir(folder);
  const listener = listenerAt(join(folder, "host"));
  await listener.address();
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
});

test("a host that could not listen once listens when the cause is gone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-listener-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "later", "sockets", "host");
  const listener = listenerAt(path);
  const both = [listener.address(), listener.address()];
  for (const one of await Promise.allSettled(both)) expect(one.status).toBe("rejected");
  await mkdir(join(folder, "later"));
  expect((await listener.address()).place).toEqual({ path });
  expect(await listener.address()).toBe(await listener.address());
});
