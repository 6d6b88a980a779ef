/** What the command line stands on: the drivers of this user, and what can be asked of them. Not for others; it changes with any release. */
export type {
  DriverAbout,
  DriverCommands,
  LogLine,
  LogPart,
  MemoryStatus,
  NodeStatus,
  PendingDemand,
  ResourceUse,
  SessionStatus,
  StoreUse,
} from "./rpc/commands.ts";
export {
  type ActorRow,
  type ActorStateName,
  type Filter,
  filterKeys,
  type Listed,
  type StateAnswer,
  type TraceEvent,
} from "./rpc/state.ts";
export {
  checkedQuery,
  type ListOptions,
  maxLimit,
  type Summarized,
  type Summary,
} from "./rpc/state-query.ts";
export {
  type DriverClient,
  DriverGoneError,
  DriverSilentError,
  findDrivers,
  type FoundDriver,
} from "./runtime/control/control-client.ts";
export { controlDirectory } from "./runtime/control/control-files.ts";
