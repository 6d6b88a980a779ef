/** The public methods of a class, as they are found on its prototypes. */

export type Method = (...args: unknown[]) => unknown;

/** Methods of the class and its bases, the nearest first; accessors and fields are not methods, nor is the constructor. */
export function methodsOf(prototype: object): Map<string, Method> {
  const methods = new Map<string, Method>();
  let current: object | null = prototype;
  while (current !== null && current !== Object.prototype) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(current))) {
      if (name === "constructor" || typeof value !== "function" || methods.has(name)) continue;
      methods.set(name, value as Method);
    }
    current = Object.getPrototypeOf(current) as object | null;
  }
  return methods;
}

/** What looks like a method where it is called, and is none. */
export type NotMethod = "field" | "getter";

/** Accessors of the class and its bases, which give what only the object itself can use. */
export function gettersOf(prototype: object): string[] {
  const getters = new Set<string>();
  const shadowed = new Set<string>();
  let current: object | null = prototype;
  while (current !== null && current !== Object.prototype) {
    for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(current))) {
      if (member.get !== undefined && !shadowed.has(name)) getters.add(name);
      shadowed.add(name);
    }
    current = Object.getPrototypeOf(current) as object | null;
  }
  return [...getters];
}

/** Which of them a name is of an object; undefined if neither. It runs no getter. */
export function notMethodOf(object: object, name: string): NotMethod | undefined {
  if (Object.hasOwn(object, name)) return "field";
  const prototype = Object.getPrototypeOf(object) as object;
  return gettersOf(prototype).includes(name) ? "getter" : undefined;
}

/** Methods that every actor has, by Ray's names; a class may define the last hook itself, which only the runtime calls. */
export const builtInMethods: readonly string[] = [
  "__ray_ready__",
  "__ray_terminate__",
  "__ray_call__",
];
export const shutdownHook = "__ray_shutdown__";
