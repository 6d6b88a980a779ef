/**
 * The live page for the sister packages: who serves it, and who has a panel on it. This entry is
 * internal and changes with any release.
 */
export {
  addDashboardPanel,
  type Dashboard,
  type DashboardOptions,
  type DashboardPanel,
  dashboardPanels,
  type DashboardServer,
  type DashboardSession,
  isDashboardServed,
  provideDashboard,
} from "./runtime/observe/dashboard.ts";
export { RaySystemError } from "./shared/errors.ts";
export type {
  LogLine,
  LogPart,
  MemoryStatus,
  NodeStatus,
  PendingDemand,
  SessionStatus,
} from "./rpc/commands.ts";
export { maxLimit } from "./rpc/state-query.ts";
export type {
  ActorRow,
  Listed,
  NodeRow,
  ObjectRow,
  PlacementGroupRow,
  TaskRow,
  WorkerRow,
} from "./rpc/state.ts";
