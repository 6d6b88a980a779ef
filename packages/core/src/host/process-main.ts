/**
 * Entry point of a host process.
 *
 * Its channels to the driver are inherited sockets, or, if the driver is on another machine,
 * connections to its listener. It lives as long as the control channel: a driver that is gone, for
 * whatever reason, takes it along. A process that is too busy to notice is ended by the guard
 * (runtime/launch/driver-watchdog.ts) or by its agent. Ready answers leave before it ends.
 */
import { writeSync } from "node:fs";
import { expose, wrap } from "comlink";
import { type CauseData, causeToData } from "../protocol/death-cause-data.ts";
import type { DeathCause } from "../shared/errors.ts";
import { setCodeRoots } from "../shared/code-roots.ts";
import { newBudget } from "../store/memory-budget.ts";
import type { Channel } from "../transport/channel.ts";
import { drainAll } from "../transport/drain.ts";
import { channelEndpoint } from "../transport/endpoint.ts";
import { renew } from "../transport/tls/credentials.ts";
import { inheritedSocket, SocketChannel } from "../transport/socket/socket.ts";
import { dialled, inherited, type LauncherControl } from "./host-control.ts";
import { HostListener, type HostListenerParts } from "./channels/host-listener.ts";
import { startHost } from "./host-runtime.ts";
import { LineMarker, PipeWriter, redirectOutput } from "./output.ts";
import { markOwnProcess } from "./own-process.ts";
import { readCredentialsFrom, readSettings } from "./settings.ts";
import { asError } from "../shared/errors/thrown.ts";
import { timers } from "../shared/machine/timers.ts";

/** The channels between this process and its driver. */
interface Lines {
  readonly control: Channel;
  readonly data: (explain: () => Promise<DeathCause>) => Channel;
  readonly listen: (parts: Pick<HostListenerParts, "death" | "onChannel">) => HostListener;
  /** Reports the cause to the agent, too: a message to the driver may no longer leave. */
  readonly dying?: (cause: CauseData) => void;
}

/** Returns a new promise on each call: the reactions of a promise live as long as it does. */
const never = (): Promise<DeathCause> => new Promise(() => undefined);
// The process that started it is already gone and needs nothing of it.
const settings = readSettings() ?? process.exit(0);
process.title = `rayling ${settings.hostId}`;
setCodeRoots(settings.codeRoots ?? []);
markOwnProcess();

if (settings.inside.logToDriver === true) {
  const outputs = {
    stdout: { pipe: new PipeWriter(1), marker: new LineMarker() },
    stderr: { pipe: new PipeWriter(2), marker: new LineMarker() },
  };
  redirectOutput((stream, owner, text) => {
    const { pipe, marker } = outputs[stream];
    pipe.write(marker.mark(owner, text));
  });
  process.on("exit", () => {
    for (const { pipe } of Object.values(outputs)) pipe.end();
  });
}
const lines = "path" in settings.listenAt.place ? inheritedLines() : await dialledLines();
const { control } = lines;
void control.closed.then(({ kind, message }) => {
  // Without this message its agent sees a clean exit, without a reason.
  if (kind === "unreachable") {
    lines.dying?.({ kind, message: `its host lost the connection to the driver: ${message}` });
  }
  process.exit(0);
});
const endpoint = channelEndpoint(control);
const driver = wrap<LauncherControl>(endpoint);
expose(
  startHost({
    identity: settings,
    driver,
    data: lines.data,
    listen: lines.listen,
    objectStore: {
      budget: newBudget(settings.objectStoreMemory),
      spillDirectory: settings.spillDirectory,
      isDevelopment: settings.isDevelopment,
    },
    keepsResults: true,
    onFatal: (thrown) => {
      const error = asError(thrown);
      const message = `uncaught in its process: ${error.name}: ${error.message}`;
      const cause = causeToData({ kind: "uncaught-exception", message, error });
      void driver.dying(cause);
      drainAll([control]);
      lines.dying?.(cause);
    },
  }),
  endpoint,
);
void driver.ready();

function inheritedLines(): Lines {
  const { hostId, network, listenAt: address } = settings;
  return {
    control: new SocketChannel(inheritedSocket(inherited.control), {
      peer: "the driver",
      keepsAlive: true,
      explain: async () => ({ kind: "unreachable", message: "the driver is gone" }),
    }),
    data: (explain) =>
      new SocketChannel(inheritedSocket(inherited.data), { peer: "the driver", explain }),
    listen: (parts) => new HostListener({ hostId, network, address, ...parts }),
  };
}

/** Reports the listening address to the agent, and waits for the driver. */
async function dialledLines(): Promise<Lines> {
  const { hostId, driverId, network, listenAt: address, publicHost, ports } = settings;
  let known: Pick<HostListenerParts, "death" | "onChannel"> | undefined;
  const early: [string, Channel][] = [];
  const listener = new HostListener({
    hostId,
    address,
    ...(publicHost === undefined ? {} : { publicHost }),
    ...(ports === undefined ? {} : { ports }),
    network,
    // Nobody can report that the driver is gone; its silence does.
    death: (peerId) => (peerId === driverId || known === undefined ? never() : known.death(peerId)),
    onChannel: (peerId, channel) => {
      if (known === undefined) early.push([peerId, channel]);
      else known.onChannel(peerId, channel);
    },
  });
  const expected = [listener.expect(dialled.control), listener.expect(dialled.data)] as const;
  const agent = inheritedSocket(inherited.control);
  agent.on("error", () => undefined);
  // Without its agent nobody would end it.
  agent.once("close", () => process.exit(0));
  readCredentialsFrom(agent, (renewed) => {
    if (network.credentials !== undefined) renew(network.credentials, renewed);
  });
  agent.write(`${JSON.stringify(await listener.address())}\n`);
  const [toControl, toData] = await Promise.all(expected.map(({ channel }) => channel));
  for (const one of expected) one.end();
  if (toControl === undefined || toData === undefined) throw new Error("two were expected");
  return {
    control: toControl,
    data: () => toData,
    dying: (cause) => {
      try {
        writeSync(inherited.control, `${JSON.stringify({ dying: cause })}\n`);
      } catch {
        // The cause is then the way the process ended.
      }
    },
    listen: (parts) => {
      known = parts;
      // The host asks for its listener while it is being made, so early channels are delivered
      // afterwards.
      timers.queueMicrotask(() => {
        for (const [peerId, channel] of early) parts.onChannel(peerId, channel);
      });
      return listener;
    },
  };
}
