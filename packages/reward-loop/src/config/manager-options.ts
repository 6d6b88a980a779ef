/** The settings of a manager by verl's names as its options here: `overlong_buffer_cfg` is `overlongBuffer`, and so on. */

import { isTree } from "@rayling/config-tree";
import { managerOptionOf } from "../options/managers.ts";

/** What is null is none. */
export function managerOptionsOf(
  settings: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [
        managerOptionOf(key),
        isTree(value) ? managerOptionsOf(value) : value,
      ]),
  );
}
