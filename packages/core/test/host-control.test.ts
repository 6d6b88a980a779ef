/** Control calls to a host that ends before it answers them. */
import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { wrap } from "comlink";
import { expect, test } from "vitest";
import type { HostControl } from "../src/host/host-control.ts";
import { controlUntil, HostLostError } from "../src/runtime/launch/host.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import { portEndpoint } from "../src/transport/thread.ts";

test("a control call that is pending when its host dies rejects, and so does every later one", async () => {
  const { port1, port2 } = new MessageChannel();
  const busy = `const { workerData, parentPort } = require("node:worker_threads");
workerData.on("message", () => parentPort.postMessage("asked"));`;
  const worker = new Worker(busy, { eval: true, workerData: port2, transferList: [port2] });
  const exited = once(worker, "exit").then(([exitCode]): DeathCause => ({
    kind: "exited",
    exitCode: Number(exitCode),
    message: "it ended",
  }));
  const endpoint = portEndpoint(port1);
  const control = controlUntil("host-1", wrap<HostControl>(endpoint), exited);
  const pending = [control((host) => host.stats()), control((host) => host.registered())];
  const settled = Promise.allSettled(pending);
  await once(worker, "message");
  await worker.terminate();
  for (const one of await settled) {
    expect(one).toMatchObject({ status: "rejected", reason: { deathCause: { kind: "exited" } } });
  }
  const late = control((host) => host.stop());
  await expect(late).rejects.toThrow(HostLostError);
  await expect(late).rejects.toThrow("host host-1 is gone: it ended");
  endpoint.end();
});
