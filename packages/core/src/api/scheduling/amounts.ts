/**
 * Checks of resource amounts as users write them: fractions go down to 0.0001, and memory is in
 * whole bytes.
 */
import { type Check, count } from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";

const smallest = 0.0001;

export const amount: Check = (value) => {
  const problem = count(0, "fraction")(value);
  if (problem !== undefined) return problem;
  return value !== 0 && Number(value) < smallest ? `must be 0 or at least ${smallest}` : undefined;
};

/** One GPU can be shared in fractions; several are whole. */
export const gpus: Check = (value) =>
  amount(value) ??
  (Number(value) > 1 && !Number.isInteger(value) ? "must be a whole number above 1" : undefined);

export const bytes: Check = count(0);

/** Checks amounts under the user's own names. */
export const resources: Check = (value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return "must map names to amounts";
  }
  for (const [name, wanted] of Object.entries(value)) {
    const option = ownOptions[name];
    if (option !== undefined) return `must not hold "${name}", which has the option ${option},`;
    if (name === "" || name.startsWith("node:__")) return `must not hold ${JSON.stringify(name)}`;
    const problem = amount(wanted);
    if (problem !== undefined) return `has ${name}: ${show(wanted)}, which ${problem};`;
  }
  return undefined;
};

/** Checks the amounts of a bundle, which names CPU, GPU and memory like other resources. */
export const bundle: Check = (value) => {
  const problem = named(value, { CPU: amount, GPU: amount, memory: bytes });
  if (problem !== undefined) return problem;
  return Object.values(Object(value)).some((wanted) => Number(wanted) > 0)
    ? undefined
    : "must not be empty";
};

/** Checks bundles that a session reserves in advance. */
export const reservedBundles: Check = (value) => {
  if (!Array.isArray(value) || value.length === 0) return "must be a list of bundles, [{ CPU: 4 }]";
  for (const [index, one] of value.entries()) {
    const problem =
      bundle(one) ??
      (Object(one).GPU > 0 ? "has GPU, which actors and tasks reserve one by one;" : undefined);
    if (problem !== undefined) return `has bundle ${index}, which ${problem}`;
  }
  return undefined;
};

/** Checks the amounts that a machine's agent offers besides CPUs. */
export const offered: Check = (value) => named(value, { GPU: gpus, memory: bytes });

/** @param own checks of the names that have no options of their own here */
function named(value: unknown, own: Readonly<Record<string, Check>>): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return "must map names of resources to amounts";
  }
  const rest: Record<string, unknown> = { ...value };
  for (const [name, check] of Object.entries(own)) {
    const wanted = rest[name];
    delete rest[name];
    const problem = wanted === undefined ? undefined : check(wanted);
    if (problem !== undefined) return `has ${name}: ${show(wanted)}, which ${problem};`;
  }
  return resources(rest);
}

const ownOptions: Readonly<Record<string, string | undefined>> = {
  CPU: "numCpus",
  GPU: "numGpus",
  memory: "memory",
};
