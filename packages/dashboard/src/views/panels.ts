/** Panels that others of the driver have added, of one kind. */
import { dashboardPanels } from "@rayling/core/dashboard";
import type { View } from "./view.ts";

/** Returns `{ panels }`: the state of each with its place, in order of their beginning. */
export function panelsOf(kind: string): View {
  return async () => {
    const panels = dashboardPanels().filter((panel) => panel.kind === kind);
    return {
      panels: await Promise.all(
        panels.map(async ({ state, rewardLog }) => ({ rewardLog, state: await state() })),
      ),
    };
  };
}
