/** The settings of a manager by verl's names as its options here: `overlong_buffer_cfg` is `overlongBuffer`, and so on. */

import { isTree } from "@rayling/config-tree";

/** What is null is none. */
export function managerOptionsOf(
  settings: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [optionOf(key), isTree(value) ? managerOptionsOf(value) : value]),
  );
}

export function optionOf(key: string): string {
  return key
    .replace(/_cfg$/, "")
    .replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}
