import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const report = process.env["RAYLING_TEST_REPORT"];

/** What the runtime must do whatever its actors run in: the battery of the other isolations. */
const battery = ["test/core/**/*.test.ts", "packages/core/test/references.test.ts"];

/** They hold threads, and watch them by shared memory; test/conformance has such cases for every isolation. */
const ofThreads = ["test/core/cancel.test.ts", "test/core/lifetime.test.ts"];

/** The battery and Ray's cases where an agent starts all processes and they are spoken to over TCP or TLS (test/fixtures/over-agent.ts). */
const overAgent = {
  include: [...battery, "test/conformance/**/*.test.ts"],
  setupFiles: "test/fixtures/over-agent.ts",
  // It counts files in a folder of its own, and an agent keeps them in its own.
  exclude: [...ofThreads, "test/core/objects.test.ts", "test/conformance/table.test.ts"],
};

/** Tests use core as it is published, built by test/fixtures/build-core.ts: that is what users run, and its hosts start in half of the time. */
const conditions = ["built", "module", "node", "development|production"];

export default defineConfig({
  ssr: { resolve: { conditions, externalConditions: ["built"] } },
  test: {
    globalSetup: "test/fixtures/build-core.ts",
    // Every file gets a process of its own: tests start and end threads of theirs.
    pool: "forks",
    // Most of a test is waiting for hosts to start and to end.
    maxWorkers: availableParallelism(),
    // Collectors are driven by hand in tests of references.
    execArgv: ["--expose-gc", "--conditions=built"],
    // So do the drivers and agents that tests start.
    env: { NODE_OPTIONS: "--conditions=built" },
    // No test asserts a time; this only keeps one that hangs from holding up the rest on a slow machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: report === undefined ? ["default"] : ["default", "json"],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
    projects: [
      {
        extends: true,
        test: {
          name: "thread",
          include: ["test/**/*.test.ts", "packages/*/test/**/*.test.ts"],
          typecheck: { enabled: true, include: ["test/**/*.test-d.ts"], tsconfig: "tsconfig.json" },
        },
      },
      ...["process", "shared", "tcp", "tls"].map((name) => ({
        extends: true as const,
        test: {
          name,
          include: battery,
          exclude: ofThreads,
          env: {
            RAYLING_ISOLATION: name === "shared" ? "shared" : "process",
            RAYLING_TEST_OVER: name,
          },
          ...(name.startsWith("t") ? overAgent : {}),
        },
      })),
    ],
  },
});
