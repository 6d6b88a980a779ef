/**
 * The Directory of a host: every query goes to the driver over the control port.
 */
import type { Remote } from "comlink";
import type { Encoded } from "../protocol/codec.ts";
import { causeFromData, causeToData } from "../protocol/death-cause-data.ts";
import type { Directory } from "../rpc/directory.ts";
import type { Channel } from "../transport/channel.ts";
import { newId } from "../shared/ids.ts";
import {
  asked,
  detach,
  detachArguments,
  type DriverControl,
  methodsOf,
  reports,
} from "./host-control.ts";
import type { DirectChannels } from "./channels/direct-channels.ts";

export type RemoteDirectory = Directory & { readonly registered: () => Promise<void> };

export function remoteDirectory(
  driver: Remote<DriverControl>,
  hostId: string,
  channels: DirectChannels,
  onExport: (values: readonly Encoded[]) => void,
): RemoteDirectory {
  const registrations = new Set<Promise<void>>();
  // A driver that cannot be reached is ending, and this host with it.
  const tell = (sent: Promise<unknown>): void => void sent.catch(() => undefined);
  return {
    ...methodsOf(driver, asked),
    ...methodsOf(driver, reports, (sent) => tell(Promise.resolve(sent))),
    register(spec) {
      const registering = driver.register(spec);
      const settled = registering.then(
        () => undefined,
        () => undefined,
      );
      registrations.add(settled);
      void settled.then(() => registrations.delete(settled));
      return registering;
    },
    registered: async () => void (await Promise.all(registrations)),
    start: (actorId, args) => {
      onExport([args.values, ...args.dependencies]);
      tell(driver.start(actorId, detachArguments(args)));
    },
    abortSignal: (actorId, index, reason) => {
      onExport([reason]);
      tell(driver.abortSignal(actorId, index, detach(reason)));
    },
    abandon: (actorId, cause) => tell(driver.abandon(actorId, causeToData(cause))),
    async locate(info) {
      const location = await driver.locate(info);
      return location.state === "alive"
        ? location
        : { state: "dead", cause: causeFromData(location.cause) };
    },
    async loss(actorId, incarnation) {
      const { restarting, cause } = await driver.loss(actorId, incarnation);
      return { restarting, cause: causeFromData(cause) };
    },
    death: async (deadId) => causeFromData(await driver.death(deadId)),
    async connect(toHostId): Promise<Channel> {
      const wayId = newId("way");
      const incoming = channels.expect(wayId);
      try {
        return await channels.open(await driver.connect(hostId, toHostId, wayId), toHostId, wayId);
      } finally {
        incoming.end();
      }
    },
  };
}
