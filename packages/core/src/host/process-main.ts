/**
 * Entry point of a host process: a host whose channels are sockets that it inherits from its driver.
 *
 * It lives as long as the control socket: a driver that is gone, however it went, takes it along (a process that is too busy to notice is ended by the
 * guard, runtime/guard.ts). What was answered before it ends leaves with it.
 */
import { expose, wrap } from "comlink";
import { causeToData } from "../protocol/cause.ts";
import { newBudget } from "../store/budget.ts";
import { channelEndpoint } from "../transport/endpoint.ts";
import { inheritedSocket, SocketChannel } from "../transport/socket.ts";
import {
  inherited,
  type LauncherControl,
  type ProcessSettings,
  processVariable,
} from "./control.ts";
import { startHost } from "./host-runtime.ts";
import { LineMarker, PipeWriter, redirectOutput } from "./output.ts";

const settings = JSON.parse(process.env[processVariable] ?? "{}") as ProcessSettings;
// Processes that it starts itself are none of ours.
delete process.env[processVariable];
process.title = `rayling ${settings.hostId}`;

if (settings.inside.logToDriver === true) {
  const ways = {
    stdout: { pipe: new PipeWriter(1), marker: new LineMarker() },
    stderr: { pipe: new PipeWriter(2), marker: new LineMarker() },
  };
  redirectOutput((stream, owner, text) => {
    const { pipe, marker } = ways[stream];
    pipe.write(marker.mark(owner, text));
  });
  process.on("exit", () => {
    for (const { pipe } of Object.values(ways)) pipe.end();
  });
}
const control = new SocketChannel(inheritedSocket(inherited.control), {
  peer: "the driver",
  keepsAlive: true,
  explain: async () => ({ kind: "unreachable", message: "the driver is gone" }),
});
void control.closed.then(() => process.exit(0));
const endpoint = channelEndpoint(control);
const driver = wrap<LauncherControl>(endpoint);
expose(
  startHost({
    identity: settings,
    driver,
    data: (explain) =>
      new SocketChannel(inheritedSocket(inherited.data), { peer: "the driver", explain }),
    folder: settings.folder,
    objectStore: {
      budget: newBudget(settings.objectStoreMemory),
      spillDirectory: settings.spillDirectory,
      isDevelopment: settings.isDevelopment,
    },
    keepsResults: true,
    onFatal: (thrown) => {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      const message = `uncaught in its process: ${error.name}: ${error.message}`;
      void driver.dying(causeToData({ kind: "uncaught-exception", message, error }));
      control.drainNow();
    },
  }),
  endpoint,
);
void driver.ready();
