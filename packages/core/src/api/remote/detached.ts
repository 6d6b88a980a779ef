/**
 * Detached actors of a session on an engine: they are actors of its cluster, which live on after
 * the session, and are found there by their names, by other drivers and in other languages.
 */
import type { Registration } from "../../host/code/registry.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { type ClassMembers, isGenerator, shutdownHook } from "../../shared/methods.ts";
import { makeForeign, rays } from "../python/python.ts";
import type { ActorOptions } from "./options.ts";

/** The options that the cluster has for its actors. */
const known: ReadonlySet<string> = new Set<keyof ActorOptions>([
  "name",
  "namespace",
  "getIfExists",
  "lifetime",
  "numCpus",
  "numGpus",
  "memory",
  "resources",
  "labelSelector",
  "maxRestarts",
  "maxTaskRetries",
  "maxConcurrency",
]);

/** An actor class with its options. */
interface DetachedClass {
  readonly registration: Registration;
  readonly members: ClassMembers;
  readonly options: ActorOptions;
}

/**
 * Makes the actor and returns its handle at once.
 *
 * @throws InvalidOptionError for an option that the cluster does not have
 */
export function createDetached(
  { registration, members, options }: DetachedClass,
  args: readonly unknown[],
): object {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const other = given.find(([option]) => !known.has(option))?.[0];
  if (other !== undefined) {
    throw new InvalidOptionError(
      other,
      `actor class ${registration.name}: a detached actor on a cluster cannot have ${other}; it can have ${[...known].join(", ")}`,
    );
  }
  const { name, namespace } = options;
  const all = members.methods.filter(([method]) => method !== shutdownHook);
  const streams = all.filter(([, kind]) => isGenerator(kind)).map(([method]) => method);
  return makeForeign({ name: name ?? registration.name, namespace, args }, (actorId, sent) => ({
    kind: "make",
    actorId,
    key: registration.key(),
    methods: all.map(([method]) => method).filter((method) => !streams.includes(method)),
    streams,
    options: rays({ ...options }),
    args: sent,
  }));
}
