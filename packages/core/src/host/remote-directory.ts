/**
 * The Directory of a host: every query goes to the driver over the control port.
 */
import type { Remote } from "comlink";
import type { Encoded } from "../protocol/codec.ts";
import { causeFromData, causeToData } from "../protocol/cause.ts";
import type { Directory } from "../rpc/directory.ts";
import type { Channel } from "../transport/channel.ts";
import { newId } from "../shared/ids.ts";
import { detach, detachArguments, type DriverControl } from "./control.ts";
import type { DirectChannels } from "./ways/direct-channels.ts";

export type RemoteDirectory = Directory & { readonly registered: () => Promise<void> };

export function remoteDirectory(
  driver: Remote<DriverControl>,
  hostId: string,
  ways: DirectChannels,
  onExport: (values: readonly Encoded[]) => void,
): RemoteDirectory {
  const registrations = new Set<Promise<void>>();
  // A driver that cannot be reached is ending, and this host with it.
  const tell = (sent: Promise<void>): void => void sent.catch(() => undefined);
  return {
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
    actorEnded: (actorId) => driver.actorEnded(actorId),
    abandon: (actorId, cause) => tell(driver.abandon(actorId, causeToData(cause))),
    find: (name, namespace) => driver.find(name, namespace),
    list: (allNamespaces) => driver.list(allNamespaces),
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
    kill: (info, noRestart) => driver.kill(info, noRestart),
    death: async (deadId) => causeFromData(await driver.death(deadId)),
    async connect(toHostId): Promise<Channel> {
      const wayId = newId("way");
      const incoming = ways.expect(wayId);
      try {
        return await ways.open(await driver.connect(hostId, toHostId, wayId), toHostId, wayId);
      } finally {
        incoming.end();
      }
    },
    outOfScope: (actorId) => tell(driver.outOfScope(actorId)),
    endWorker: (workerId) => driver.endWorker(workerId),
    state: (query) => driver.state(query),
    timeline: () => driver.timeline(),
    metricsText: () => driver.metricsText(),
    actorStatus: (actorId) => driver.actorStatus(actorId),
    whyWaiting: (demand) => driver.whyWaiting(demand),
    leaseWorker: (request, ticket) => driver.leaseWorker(request, ticket),
    withdrawWorker: (ticket) => tell(driver.withdrawWorker(ticket)),
    releaseWorker: (workerId) => tell(driver.releaseWorker(workerId)),
    setBlocked: (workerId, blocked) => tell(driver.setBlocked(workerId, blocked)),
    nodes: () => driver.nodes(),
    resources: () => driver.resources(),
    addNode: (spec) => driver.addNode(spec),
    removeNode: (nodeId) => driver.removeNode(nodeId),
    drainNode: (nodeId, timeoutMs) => driver.drainNode(nodeId, timeoutMs),
    createGroup: (spec) => driver.createGroup(spec),
    groupReady: (groupId) => driver.groupReady(groupId),
    removeGroup: (groupId) => driver.removeGroup(groupId),
    groups: () => driver.groups(),
  };
}
