/** The export that a program in Python calls: a function, or one instance of a class. */
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { openShippedClass, shippedCode } from "./shipped-class.ts";

export interface ServedExport {
  /** @throws TypeError if there is no such method */
  call(method: string, args: readonly unknown[]): unknown;
  /** Runs the `__ray_shutdown__` of the instance, or its `Symbol.asyncDispose`. */
  close(): Promise<void>;
}

/**
 * @param path of the module, absolute
 * @param args of the constructor
 * @throws TypeError if the module exports no class or function of that name
 */
export async function openExport(
  path: string,
  name: string,
  args: readonly unknown[],
): Promise<ServedExport> {
  if (basename(path) === shippedCode) return openShipped(path, name, args);
  const exports: Readonly<Record<string, unknown>> = await import(pathToFileURL(path).href);
  const found = exports[name];
  if (typeof found !== "function") {
    const there = Object.keys(exports).filter((one) => typeof exports[one] === "function");
    const list = there.length === 0 ? "no class or function" : there.join(", ");
    throw new TypeError(`${path} exports no class or function ${name}; it exports ${list}`);
  }
  return isClass(found)
    ? servedInstance(name, Reflect.construct(found, args))
    : served(name, found);
}

/** @param key names the class among the driver's code */
async function openShipped(
  path: string,
  key: string,
  args: readonly unknown[],
): Promise<ServedExport> {
  const { name, target } = await openShippedClass(path, key);
  return servedInstance(name, Reflect.construct(target, args));
}

function isClass(found: Function): boolean {
  return /^class\b/.test(Function.prototype.toString.call(found));
}

/** A function is the method without a name; on Ray, where methods have names, `call`. */
function served(name: string, found: Function): ServedExport {
  return {
    call(method, args) {
      if (method !== "" && method !== "call")
        throw new TypeError(`${name} is a function, and has no method ${method}`);
      return Reflect.apply(found, undefined, args);
    },
    close: () => Promise.resolve(),
  };
}

function servedInstance(name: string, instance: object): ServedExport {
  return {
    call(method, args) {
      const found: unknown = Reflect.get(instance, method);
      if (typeof found !== "function" || isEveryObjects(method)) {
        const there = methodsOf(instance).join(", ");
        const asked = method === "" ? "cannot be called" : `has no method ${method}`;
        throw new TypeError(`${name} ${asked}; its methods are ${there || "none"}`);
      }
      return Reflect.apply(found, instance, args);
    },
    async close() {
      const hook: unknown =
        Reflect.get(instance, "__ray_shutdown__") ?? Reflect.get(instance, Symbol.asyncDispose);
      if (typeof hook === "function") await Reflect.apply(hook, instance, []);
    },
  };
}

function isEveryObjects(method: string): boolean {
  return method in Object.prototype;
}

function methodsOf(instance: object): readonly string[] {
  const names = new Set<string>();
  let level: object | null = instance;
  while (level !== null && level !== Object.prototype) {
    for (const name of Object.getOwnPropertyNames(level)) {
      const { value } = Object.getOwnPropertyDescriptor(level, name) ?? {};
      if (typeof value === "function" && !isEveryObjects(name)) names.add(name);
    }
    level = Object.getPrototypeOf(level);
  }
  return [...names];
}
