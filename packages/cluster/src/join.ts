/** A machine with an agent as a node of this driver: one more launcher. */
import { expose, type Remote, wrap } from "comlink";
import {
  causeFromData,
  channelEndpoint,
  controlUntil,
  type DeathCause,
  dial,
  dialLater,
  dialled,
  type Host,
  type HostControl,
  type HostRequest,
  type JoinedNode,
  type JoinRequest,
  type LauncherControl,
  type LauncherOptions,
  newId,
} from "@rayling/core/cluster";
import { NodeAddressError, parseAddress, redacted } from "./address.ts";
import type { AgentControl, DriverAnswers } from "./contract.ts";

interface RemoteHost {
  readonly end: (cause: DeathCause) => void;
  readonly wrote: DriverAnswers["wrote"];
}

/** Rejects with NodeAddressError when nobody answers there. */
export async function joinNode(
  address: string,
  { driverId, reconnectTimeoutMs }: JoinRequest,
): Promise<JoinedNode> {
  const { place, token } = parseAddress(address);
  const name = redacted(address);
  const peerId = `the agent at ${place.host}:${place.port}`;
  const closedByUs = Promise.withResolvers<DeathCause>();
  const times = reconnectTimeoutMs === undefined ? {} : { reconnectTimeoutMs };
  const channel = await dial(
    { place, token },
    { peerId: driverId, wayId: undefined },
    { peerId, explain: () => closedByUs.promise, times: { ...times, explainMs: 0 } },
  ).catch((error: Error) => {
    throw new NodeAddressError(name, error.message, error);
  });
  const hosts = new Map<string, RemoteHost>();
  const lost = channel.closed.then(({ message }): DeathCause => ({ kind: "node-died", message }));
  const endpoint = channelEndpoint(channel);
  const answers: DriverAnswers = {
    exited: (hostId, cause) => hosts.get(hostId)?.end(causeFromData(cause)),
    wrote: (hostId, ...line) => hosts.get(hostId)?.wrote(hostId, ...line),
  };
  expose(answers, endpoint);
  const agent = wrap<AgentControl>(endpoint);
  const offer = await Promise.race([agent.describe(), lost]);
  if ("kind" in offer) throw new NodeAddressError(name, offer.message);
  void lost.then((cause) => {
    for (const host of [...hosts.values()]) host.end(cause);
  });
  return {
    ...offer,
    lost,
    launch: (request, options) =>
      launchRemote(request, options, { agent, hosts, publicHost: place.host, times }),
    close: async () => {
      const cause: DeathCause = { kind: "shutdown", message: "the runtime was shut down" };
      channel.close(cause);
      closedByUs.resolve(cause);
      await channel.closed;
    },
  };
}

interface Node {
  readonly agent: Remote<AgentControl>;
  readonly hosts: Map<string, RemoteHost>;
  readonly publicHost: string;
  readonly times: { readonly reconnectTimeoutMs?: number };
}

function launchRemote(request: HostRequest, options: LauncherOptions, node: Node): Host {
  const { nodeId, runtimeEnv, moduleUrl } = request;
  const { agent, hosts, publicHost, times } = node;
  const { driverId, jobId, namespace, inside } = options;
  const id = newId("host");
  const peerId = `host ${id}`;
  const { promise: exited, resolve } = Promise.withResolvers<DeathCause>();
  let known: DeathCause | undefined;
  let pid: number | undefined;
  const end = (cause: DeathCause): void => {
    hosts.delete(id);
    resolve(known ?? cause);
  };
  hosts.set(id, { end, wrote: (...line) => options.output.line(...line) });
  const started = agent.launch({
    identity: {
      hostId: id,
      nodeId,
      nodeLabels: options.labelsOf(nodeId),
      driverId,
      jobId,
      namespace,
      inside,
    },
    runtimeEnv,
    moduleUrl,
    isDevelopment: options.objectStoreFor(id).isDevelopment,
    publicHost,
    ...times,
  });
  started.then(
    (host) => (pid = host.pid),
    // The agent says why it ended; when it has none to speak of, this is why.
    (error: unknown) => end({ kind: "unreachable", message: String(error), error: error as Error }),
  );
  const channelTo = (wayId: string): ReturnType<typeof dialLater> =>
    dialLater(
      async () => (await started).address,
      { peerId: driverId, wayId },
      { peerId, explain: () => exited, times },
    );
  const control = channelTo(dialled.control);
  const data = channelTo(dialled.data);
  const endpoint = channelEndpoint(control);
  const answers: LauncherControl = {
    ...options.controlFor(id),
    ready: () => undefined,
    dying: (cause) => void (known ??= causeFromData(cause)),
  };
  expose(answers, endpoint);
  const use = controlUntil(id, wrap<HostControl>(endpoint), exited);
  const terminate = async (cause: DeathCause): Promise<void> => {
    known ??= cause;
    void started.then(() => agent.terminate(id)).catch(() => undefined);
    await exited;
  };
  return {
    id,
    nodeId,
    isolation: "process",
    isRemote: true,
    get pid() {
      return pid;
    },
    exited,
    channel: data,
    control: use,
    terminate,
    async stop(cause) {
      known ??= cause;
      await use((host) => host.stop());
      await terminate(cause);
    },
  };
}
