/** The battery of the runtime once more for every other isolation. */
import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

export default mergeConfig(
  base,
  defineConfig({
    test: {
      typecheck: { enabled: false },
      projects: ["process", "shared"].map((isolation) => ({
        extends: true,
        test: {
          name: isolation,
          env: { RAYLING_ISOLATION: isolation },
          include: ["test/core/**/*.test.ts", "packages/core/test/references.test.ts"],
        },
      })),
    },
  }),
);
