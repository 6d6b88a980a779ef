/**
 * The public methods of a class, as found on its prototypes.
 */

export type Method = (...args: unknown[]) => unknown;

/** A class of actors. */
export type Constructor = new (...args: unknown[]) => object;

export function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}

export function isClass(value: unknown): value is Constructor {
  // The prototype property of a class cannot be written; that of a function can, and arrows have
  // none.
  return (
    typeof value === "function" &&
    Object.getOwnPropertyDescriptor(value, "prototype")?.writable === false
  );
}

/** Returns the prototype of an object. */
export function prototypeOf(value: object): object | null {
  const prototype: unknown = Object.getPrototypeOf(value);
  return typeof prototype === "object" || typeof prototype === "function" ? prototype : null;
}

/**
 * Returns the methods of the class and its bases, the nearest first. Accessors, fields and the
 * constructor are not methods.
 */
export function methodsOf(prototype: object | null): Map<string, Method> {
  const methods = new Map<string, Method>();
  let current: object | null = prototype;
  while (current !== null && current !== Object.prototype) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(current))) {
      if (name !== "constructor" && isMethod(value) && !methods.has(name)) methods.set(name, value);
    }
    current = prototypeOf(current);
  }
  return methods;
}

/** Returns one of `methodsOf`. */
export function methodOf(prototype: object | null, name: string): Method | undefined {
  if (name === "constructor") return undefined;
  let current: object | null = prototype;
  while (current !== null && current !== Object.prototype) {
    const value: unknown = Object.getOwnPropertyDescriptor(current, name)?.value;
    if (isMethod(value)) return value;
    current = prototypeOf(current);
  }
  return undefined;
}

/** The kinds of members that look like a method at the caller but are not one. */
export type NotMethod = "field" | "getter";

/**
 * Returns the names of the accessors of the class and its bases. Only the object itself can use
 * their values.
 */
export function gettersOf(prototype: object | null): string[] {
  const getters = new Set<string>();
  const shadowed = new Set<string>();
  let current: object | null = prototype;
  while (current !== null && current !== Object.prototype) {
    for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(current))) {
      if (member.get !== undefined && !shadowed.has(name)) getters.add(name);
      shadowed.add(name);
    }
    current = prototypeOf(current);
  }
  return [...getters];
}

/**
 * Says whether a name is a field or a getter of an object; undefined when it is neither. It runs no
 * getter.
 */
export function notMethodOf(object: object, name: string): NotMethod | undefined {
  if (Object.hasOwn(object, name)) return "field";
  return gettersOf(prototypeOf(object)).includes(name) ? "getter" : undefined;
}

/**
 * Methods that every actor has, by Ray's names. A class may define the last one, a hook, itself;
 * only the runtime calls it.
 */
export const builtInMethods: readonly string[] = [
  "__ray_ready__",
  "__ray_terminate__",
  "__ray_call__",
];
export const shutdownHook = "__ray_shutdown__";

/** The members on the prototypes of a class, as data. */
export interface ClassMembers {
  /** The name and the kind (`tagOf`) of each method. */
  readonly methods: readonly (readonly [name: string, kind: string])[];
  readonly getters: readonly string[];
}

export function membersOf({ prototype }: { readonly prototype: object }): ClassMembers {
  const methods = [...methodsOf(prototype)].map(([name, method]) => [name, tagOf(method)] as const);
  return { methods, getters: gettersOf(prototype) };
}

/** Returns the kind of a function: "Function", "AsyncFunction", "GeneratorFunction" and so on. */
export function tagOf(method: unknown): string {
  return Object.prototype.toString.call(method).slice("[object ".length, -1);
}

/** @param kind what `tagOf` returns */
export function isGenerator(kind: string): boolean {
  return kind.endsWith("GeneratorFunction");
}
