/**
 * Starts host processes on the driver's own machine: they inherit the sockets of their session with
 * the driver and of the control channel. host-process knows how a process starts and ends.
 */
import { join } from "node:path";
import { expose, wrap } from "comlink";
import type { HostControl, LauncherControl, ProcessSettings } from "../../host/host-control.ts";
import { causeFromData } from "../../protocol/death-cause-data.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { channelEndpoint } from "../../transport/endpoint.ts";
import { newToken } from "../../transport/connect/handshake.ts";
import { SocketChannel } from "../../transport/socket/socket.ts";
import type { Guard } from "./driver-watchdog.ts";
import {
  controlUntil,
  type Host,
  identityOf,
  type HostRequest,
  type LauncherOptions,
} from "./host.ts";
import { HostProcess } from "./host-process.ts";

export function launchProcess(request: HostRequest, options: LauncherOptions, guard: Guard): Host {
  const { nodeId, runtimeEnv, moduleUrl } = request;
  const id = newId("host");
  const objectStore = options.objectStoreFor(id);
  const settings: ProcessSettings = {
    ...identityOf(id, nodeId, options),
    listenAt: { place: { path: join(guard.folder, id) }, token: newToken() },
    spillDirectory: objectStore.spillDirectory,
    isDevelopment: objectStore.isDevelopment,
    objectStoreMemory: objectStore.budget.limitBytes,
  };
  const child = new HostProcess(
    { settings, runtimeEnv, moduleUrl },
    {
      guard,
      onLine: (stream, owner, line) => options.output.line(id, stream, owner, line),
    },
  );
  const { exited } = child;
  const ready = Promise.withResolvers<void>();
  const peer = `host ${id}`;
  const data = new SocketChannel(child.data, { peer, explain: () => exited });
  void child.ended.then(() => data.peerGone());
  const control = new SocketChannel(child.control, { peer, explain: async () => unreachable });
  child.hearsUntil(control.closed);
  const endpoint = channelEndpoint(control);
  const answers: LauncherControl = {
    ...options.controlFor(id),
    ready: () => {
      child.ready();
      ready.resolve();
    },
    dying: (cause) => child.dying(causeFromData(cause)),
  };
  expose(answers, endpoint);
  const use = controlUntil(id, wrap<HostControl>(endpoint), exited);
  return {
    id,
    nodeId,
    isolation: "process",
    pid: child.pid,
    ready: ready.promise,
    exited,
    channel: data,
    control: use,
    terminate: (cause) => child.terminate(cause),
    async stop(cause) {
      child.dying(cause);
      await use((host) => host.stop());
      await child.terminate(cause);
    },
  };
}

const unreachable: DeathCause = { kind: "unreachable", message: "its sockets closed" };
