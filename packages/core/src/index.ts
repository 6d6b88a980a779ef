/**
 * The public names of core. Users may rely on every name here; everything else may change.
 */
export {
  getActor,
  inspectSerializability,
  kill,
  listNamedActors,
  registerSerializer,
} from "./api/actors.ts";
export type { KillOptions } from "./api/actors.ts";
export { availableResources, Cluster, clusterResources, drainNode, nodes } from "./api/cluster.ts";
export type { DrainOptions, NodeOptions } from "./api/cluster.ts";
export type { LabelSelector } from "./api/scheduling/labels.ts";
export { get, put, wait } from "./api/objects.ts";
export type { GetOptions, WaitOptions, WaitResult } from "./api/objects.ts";
export {
  getCurrentPlacementGroup,
  getPlacementGroup,
  PlacementGroup,
  placementGroup,
  placementGroupTable,
  removePlacementGroup,
} from "./api/scheduling/placement-group.ts";
export type { PlacementGroupOptions } from "./api/scheduling/placement-group.ts";
export { map, mapUnordered } from "./api/patterns/map.ts";
export type { Mapped, MapOptions } from "./api/patterns/map.ts";
export { ActorPool } from "./api/patterns/pool.ts";
export type { PoolCall, PoolGetOptions, PoolOptions, PoolValue } from "./api/patterns/pool.ts";
export { Queue } from "./api/patterns/queue.ts";
export type { QueueOptions, QueueShutdownOptions, QueueWaitOptions } from "./api/patterns/queue.ts";
export { exitActor, getRuntimeContext } from "./api/context.ts";
export type { RuntimeContext } from "./api/context.ts";
export { cancel } from "./api/tasks.ts";
export type { CancelOptions } from "./api/tasks.ts";
export { keywords } from "./api/python/keywords.ts";
export type { Keywords } from "./api/python/keywords.ts";
export { python } from "./api/python/python.ts";
export type {
  PythonActor,
  PythonActorClass,
  PythonActorOptions,
  PythonHandle,
  PythonMethod,
} from "./api/python/python-types.ts";
export { remote } from "./api/remote/remote.ts";
export type { RemoteName } from "./api/remote/remote.ts";
export type { ActorClass } from "./api/remote/actor-class.ts";
export type { ActorOptions, TaskOptions } from "./api/remote/options.ts";
export type { RemoteFunction } from "./api/remote/remote-function.ts";
export { registerError } from "./host/code/error-classes.ts";
export type {
  FallbackStrategy,
  SchedulingOptions,
  SchedulingStrategy,
} from "./api/scheduling/scheduling.ts";
import * as metrics from "./api/metrics.ts";
import * as state from "./api/state.ts";

export { metrics, state };
export { timeline } from "./api/timeline.ts";
export type { TraceEvent } from "./rpc/state.ts";
export { currentTracing, provideTracing } from "./api/tracing.ts";
export type {
  TraceContext,
  TraceSpan,
  TraceSpanOptions,
  Tracer,
  Tracing,
  TracingApi,
} from "./telemetry/tracing.ts";
export { init, isInitialized, shutdown } from "./api/session.ts";
export type { SessionInfo } from "./api/session.ts";
export type {
  ActorHandle,
  Constructor,
  FunctionHandle,
  RefValue,
  RefValues,
  RemoteArgument,
  RemoteArguments,
  RemoteMethod,
  ResultRef,
  ShapedResult,
} from "./api/handle-types.ts";
export type { CredentialFiles } from "./transport/tls/credential-files.ts";
export type { Serializer } from "./protocol/values/encodable.ts";
export type { GroupInfo, GroupState, GroupStrategy, NodeInfo } from "./rpc/cluster-directory.ts";
export type { Amounts, LabelCondition, LabelConditions } from "./rpc/resource-demand.ts";
export type {
  Isolation,
  Permissions,
  ResourceLimits,
  RestartIntensity,
  RuntimeEnv,
  TaskIsolation,
} from "./rpc/directory.ts";
export { ObjectRefGenerator } from "./caller/stream.ts";
export type { CallOptions, CallOptionsOfMethod } from "./caller/call-options.ts";
export type { InitOptions } from "./runtime/init-options.ts";
export type { DashboardOptions } from "./runtime/observe/dashboard.ts";
export {
  ActorAlreadyExistsError,
  ActorDiedError,
  ActorNotFoundError,
  ActorPlacementGroupRemoved,
  ActorUnavailableError,
  DeadlockError,
  Empty,
  Full,
  GetTimeoutError,
  InvalidOptionError,
  MethodNotFoundError,
  NoMoreResultsError,
  ActorUnschedulableError,
  AuthenticationError,
  CertificateError,
  NodeDiedError,
  NotEncodableError,
  ObjectFetchTimedOutError,
  ObjectLostError,
  ObjectMutatedError,
  ObjectReconstructionFailedError,
  ObjectStoreFullError,
  OutOfDiskError,
  OwnerDiedError,
  PendingCallsLimitExceeded,
  ProtocolVersionError,
  PythonError,
  PythonTaskError,
  RayError,
  RaySystemError,
  ReferenceCountingError,
  RemoteNotRegisteredError,
  RuntimeEnvSetupError,
  SessionEndedError,
  remoteSiteOf,
  StreamingGeneratorReplayInconsistentError,
  TaskCancelledError,
  TaskError,
  TaskPlacementGroupRemoved,
  TaskUnschedulableError,
  UnserializableException,
  WorkerCrashedError,
} from "./shared/errors.ts";
export type { DeathCause, ReconstructionFailure, RemoteSite } from "./shared/errors.ts";
export { ObjectRef } from "./store/object-ref.ts";
