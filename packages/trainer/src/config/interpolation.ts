/**
 * OmegaConf's references in a configuration: `${trainer.project_name}` is the value at that key, `${oc.select:key,default}` too if there is one, `${oc.env:NAME,default}` a variable of the
 * environment. A text that is nothing but a reference becomes the value itself; else its text stands in it.
 */

import { isTree, RewardConfigError, valueAt } from "@rayling/reward-loop/config";
import type { ConfigTree, ConfigValue } from "@rayling/reward-loop/config";
import { parse } from "yaml";

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws RewardConfigError for one that names nothing, and for those that go round in a circle. */
export function resolveReferences(
  tree: ConfigTree,
  environment: Environment = process.env,
): ConfigTree {
  const walk = (value: ConfigValue, key: string, open: readonly string[]): ConfigValue => {
    if (typeof value === "string") return resolved(value, key, open);
    if (Array.isArray(value)) {
      return (value as readonly ConfigValue[]).map((one) => walk(one, key, open));
    }
    if (!isTree(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inside]) => [
        name,
        walk(inside, key === "" ? name : `${key}.${name}`, open),
      ]),
    );
  };
  const resolved = (text: string, key: string, open: readonly string[]): ConfigValue => {
    const whole = /^\$\{([^${}]*)\}$/.exec(text);
    if (whole !== null) return valueOf(whole[1] as string, key, open);
    return text.replaceAll(/\$\{([^${}]*)\}/g, (_match, reference: string) => {
      const value = valueOf(reference, key, open);
      return typeof value === "string" ? value : JSON.stringify(value);
    });
  };
  const valueOf = (reference: string, key: string, open: readonly string[]): ConfigValue => {
    const [, resolver, rest = ""] = /^(oc\.\w+):(.*)$/s.exec(reference) ?? [];
    if (resolver === undefined) return at(reference.trim(), key, open);
    const [name = "", ...defaults] = rest.split(",").map((one) => one.trim());
    const fallback = defaults.length === 0 ? undefined : (parse(defaults.join(",")) as ConfigValue);
    if (resolver === "oc.env") {
      const value = environment[name] ?? fallback;
      if (value !== undefined) return value;
      throw new RewardConfigError(key, `wants the environment's ${name}, which is not set`);
    }
    if (resolver !== "oc.select") {
      throw new RewardConfigError(key, `there is no resolver ${resolver}`, reference);
    }
    const isThere = valueAt(tree, name.split(".")) !== undefined;
    return isThere || fallback === undefined ? at(name, key, open) : fallback;
  };
  const at = (name: string, key: string, open: readonly string[]): ConfigValue => {
    if (open.includes(name)) {
      throw new RewardConfigError(key, `goes round in a circle: ${[...open, name].join(" -> ")}`);
    }
    const value = valueAt(tree, name.split("."));
    if (value !== undefined) return walk(value, name, [...open, name]);
    throw new RewardConfigError(key, `wants ${name}, which there is not`);
  };
  return walk(tree, "", []) as ConfigTree;
}
