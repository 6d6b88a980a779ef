/**
 * The parts of core that the command line stands on: it finds the drivers of this user and queries
 * them. This entry is internal and changes with any release.
 */
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
export type { CallLook, StackAnswer, StackRow, WaitLook } from "./rpc/stacks.ts";
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
