/**
 * Entry point of a host thread: makes its runtime from the ports it was started with, then serves until it is ended.
 *
 * Owner, with runtime/launch.ts, of worker_threads' Worker side. Composition only: what the parts do is in their files.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { expose, wrap } from "comlink";
import { setCurrentCaller } from "../caller/current.ts";
import { Caller } from "../caller/caller.ts";
import type { CallMessage, Session } from "../rpc/session.ts";
import { Waiting } from "../caller/waiting.ts";
import { RemoteNotRegisteredError, RaySystemError } from "../shared/errors.ts";
import { limitGarbage } from "../protocol/shared-memory.ts";
import { Budget } from "../store/budget.ts";
import { SpillFiles } from "../store/spill-files.ts";
import { threadChannel } from "../transport/thread.ts";
import type {
  FailedCreation,
  CreateRequest,
  CreateResult,
  DriverControl,
  HostControl,
  HostSettings,
} from "./control.ts";
import { errorClasses } from "./error-classes.ts";
import { decodeArguments, Instance } from "./instance.ts";
import { guardDriverCode, Loader } from "./loader.ts";
import { remoteDirectory } from "./remote-directory.ts";
import { runTask, taskTarget } from "./task-runner.ts";

const settings = workerData as HostSettings;
const { hostId, driverId } = settings;
const instances: Map<string, Instance> = new Map();
const classNames: Map<string, string> = new Map();
const loader = new Loader();
const driver = wrap<DriverControl>(settings.directory);
const directory = remoteDirectory(driver, hostId, (values) => {
  for (const value of values) caller.exportReferences(value.references ?? [], driverId);
});
let tasksRunning = 0;
const waiting = new Waiting((isWaiting) => {
  if (tasksRunning > 0) directory.setBlocked(hostId, isWaiting);
});

const caller: Caller = new Caller({
  id: hostId,
  directory,
  errorClasses,
  waiting,
  objectStore: {
    budget: new Budget(settings.objectStore.budget),
    files: new SpillFiles(settings.objectStore.spillDirectory, hostId),
  },
  onCall,
});
limitGarbage(settings.objectStore.budget.limitBytes);

guardDriverCode();
// Answers that are ready leave before the thread does, whatever ends it.
process.on("exit", () => caller.flush());
setCurrentCaller(caller, settings.namespace);
caller.addSession(
  driverId,
  threadChannel(settings.data, () => directory.death(driverId)),
);
expose(
  { load, create, accept, stats, stop: () => caller.flush() } satisfies HostControl,
  settings.control,
);
// The control port keeps the thread alive; nothing else needs to.
parentPort?.unref();

function onCall(call: CallMessage, session: Session): void {
  if (call.route.target === taskTarget) {
    tasksRunning += 1;
    void runTask(call, session, loader, caller.codec, hostId).finally(() => {
      tasksRunning -= 1;
      // What the task left waiting does not count for the next one.
      waiting.reset();
    });
    return;
  }
  const instance = instances.get(call.route.target);
  if (instance !== undefined) return instance.receive(call, session);
  const error = new RaySystemError(`host ${hostId} has no actor ${call.route.target}`);
  session.answerFailure(call.id, caller.codec.encodeFailure(error));
}

async function load(key: CreateRequest["key"]): Promise<CreateResult> {
  try {
    await loader.find(key);
    return { ok: true };
  } catch (error) {
    return failed(
      error instanceof RemoteNotRegisteredError ? "not-registered" : "load-failed",
      error,
    );
  }
}

async function create({ key, info, args }: CreateRequest): Promise<CreateResult> {
  try {
    const ActorClass = (await loader.find(key)) as new (...args: unknown[]) => object;
    const object = new ActorClass(
      ...decodeArguments(caller.codec, { arguments: args.values, dependencies: args.dependencies }),
    );
    const identity = { className: info.className, actorId: info.actorId, hostId };
    instances.set(info.actorId, new Instance(object, info.maxConcurrency, identity, caller.codec));
    classNames.set(info.actorId, info.className);
    return { ok: true };
  } catch (error) {
    return failed("init-failed", error);
  }
}

function failed(kind: FailedCreation["kind"], error: unknown): CreateResult {
  return {
    ok: false,
    kind,
    failure: caller.codec.decodeFailure(caller.codec.encodeFailure(error)),
  };
}

function accept(peerId: string, port: MessagePort): void {
  caller.addSession(
    peerId,
    threadChannel(port, () => directory.death(peerId)),
  );
}

function stats(): ReturnType<HostControl["stats"]> {
  const actors = [...instances].map(([actorId, instance]) => ({
    actorId,
    className: classNames.get(actorId) ?? "",
    ...instance.stats,
  }));
  return {
    hostId,
    actors,
    exportedObjects: caller.store.exportedCount,
    objects: caller.memory.stats,
    outstandingCalls: caller.outstandingCalls,
  };
}
