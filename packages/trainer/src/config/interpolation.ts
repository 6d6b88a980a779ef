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
    const parts: ConfigValue[] = [];
    let from = 0;
    for (let start = text.indexOf("${"); start >= 0; start = text.indexOf("${", from)) {
      const end = endOf(text, start);
      if (end === undefined) throw new RewardConfigError(key, "has a ${ without its }", text);
      if (start > from) parts.push(text.slice(from, start));
      // Its default may be a reference itself.
      const reference = textOf(resolved(text.slice(start + 2, end), key, open));
      parts.push(valueOf(reference, key, open));
      from = end + 1;
    }
    if (from < text.length) parts.push(text.slice(from));
    const [only = ""] = parts;
    return parts.length < 2 ? only : parts.map(textOf).join("");
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

/** The } of the ${ that is there. */
function endOf(text: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}" && --depth === 0) return at;
  }
  return undefined;
}

function textOf(value: ConfigValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
