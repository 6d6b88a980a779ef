/**
 * Translates verl's names of a manager's settings to option names: `overlong_buffer_cfg` is
 * `overlongBuffer`, and so on.
 */

import { isTree } from "@rayling/config-tree";
import { managerOptionOf } from "../options/defaults/managers.ts";

/** A null is unset. */
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
