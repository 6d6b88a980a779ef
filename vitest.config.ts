import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "packages/*/test/**/*.test.ts"],
    typecheck: { enabled: true, include: ["test/**/*.test-d.ts"], tsconfig: "tsconfig.json" },
    // Every file gets a process of its own: tests start and end threads of theirs.
    pool: "forks",
    execArgv: ["--expose-gc"],
  },
});
