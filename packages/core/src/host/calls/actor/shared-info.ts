/** Facts of actors, which a host is told for each of them anew: those of a class are kept once. */
import type { ActorInfo } from "../../../rpc/directory.ts";

type ClassFacts = Pick<
  ActorInfo,
  "className" | "methods" | "getters" | "methodOptions" | "concurrencyGroups"
>;

const known: Map<string, ClassFacts> = new Map();

/** A program that makes new classes without end must not fill the memory. */
const mostKnown = 100;

/** Returns the same facts, in memory that actors with equal classes share. */
export function sharedInfo(info: ActorInfo): ActorInfo {
  const { className, methods, getters, methodOptions, concurrencyGroups } = info;
  const facts: ClassFacts = {
    className,
    methods,
    methodOptions,
    concurrencyGroups,
    ...(getters === undefined ? {} : { getters }),
  };
  const key = JSON.stringify(facts);
  const first = known.get(key);
  if (first === undefined) {
    if (known.size === mostKnown) known.clear();
    known.set(key, facts);
  }
  return { ...info, ...first };
}
