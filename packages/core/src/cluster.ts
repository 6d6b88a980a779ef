/**
 * The parts of core that `@rayling/cluster` stands on: they start hosts and connect to them. This
 * entry is internal and changes with any release.
 */
export { amount, bytes, offered } from "./api/scheduling/amounts.ts";
export { labels } from "./api/scheduling/labels.ts";
export {
  dialled,
  type DriverControl,
  type HostControl,
  type HostIdentity,
  type LauncherControl,
  type PortRange,
  type ProcessSettings,
} from "./host/host-control.ts";
export { registeredModules } from "./host/code/registry.ts";
export type { OutputStream } from "./host/output.ts";
export { type CauseData, causeFromData, causeToData } from "./protocol/death-cause-data.ts";
export type { ClusterResources, GroupSpec, NodeInfo } from "./rpc/cluster-directory.ts";
export type { Amounts, Demand, LabelCondition, LabelConditions } from "./rpc/resource-demand.ts";
export type { ForeignAnswer, ForeignRequest } from "./rpc/engine-actors.ts";
export type { RuntimeEnv } from "./rpc/directory.ts";
export type { RemoteKey } from "./rpc/remote-key.ts";
export { Guard } from "./runtime/launch/driver-watchdog.ts";
export {
  controlUntil,
  type Host,
  type HostRequest,
  identityOf,
  type LauncherOptions,
} from "./runtime/launch/host.ts";
export { forFiles } from "./runtime/launch/host-env.ts";
export { threadFlags } from "./runtime/launch/host-flags.ts";
export { HostProcess } from "./runtime/launch/host-process.ts";
export {
  type EngineEvents,
  type EngineOpener,
  type EngineRequest,
  type EngineView,
  type OpenEngine,
  provideEngine,
  type Reserved,
} from "./runtime/engine/engine.ts";
export {
  type JoinedNode,
  type JoinRequest,
  type NodeConnector,
  type NodeLauncher,
  provideLocalNode,
  provideNodes,
} from "./runtime/nodes/joined-node.ts";
export type { CodeRoot } from "./shared/code-roots.ts";
export {
  AuthenticationError,
  CertificateError,
  type DeathCause,
  InvalidOptionError,
  ProtocolVersionError,
  RayError,
  RaySystemError,
} from "./shared/errors.ts";
export { asError, codeOf, reasonOf } from "./shared/errors/thrown.ts";
export { pause, timers } from "./shared/machine/timers.ts";
export { newId } from "./shared/ids.ts";
export { warn } from "./shared/text/warning.ts";
export { standardMemory, standardObjectStoreMemory } from "./shared/machine/default-memory.ts";
export { isLoopback, isUnspecified } from "./shared/machine/loopback.ts";
export { isRunning } from "./shared/machine/processes.ts";
export {
  type Checks,
  checkOptions,
  count,
  credentialFiles,
  portNumber,
  secret,
  text,
  timerMs,
} from "./shared/options.ts";
export type { Channel } from "./transport/channel.ts";
export { type Deadline, deadline } from "./transport/deadline.ts";
export type { Address, NetworkSettings } from "./transport/address.ts";
export { listen, type Listener } from "./transport/link/listen.ts";
export { dialLater, dialLink, dialOnce } from "./transport/link/dial.ts";
export { channelEndpoint } from "./transport/endpoint.ts";
export { Link } from "./transport/link/link.ts";
export { type Watch, watchMachine } from "./transport/connect/peer-probe.ts";
export { newToken } from "./transport/connect/handshake.ts";
export { homeFolder, inHome } from "./shared/machine/home-folder.ts";
export { removeFilesOf } from "./store/spill-directory.ts";
export { readLines } from "./runtime/observe/read-lines.ts";
export {
  certificatesIn,
  type CredentialFiles,
  defaultCredentialFolder,
  findCredentials,
  type FoundCredentials,
} from "./transport/tls/credential-files.ts";
export { type Credentials, namesOf } from "./transport/tls/credentials.ts";
export { watchCredentials } from "./transport/tls/credential-watch.ts";
