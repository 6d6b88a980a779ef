import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { LongFilesFirst } from "./test/fixtures/long-files-first.ts";
import { WhereTimeWent } from "./test/fixtures/where-time-went.ts";

const report = process.env["RAYLING_TEST_REPORT"];

/** Pure functions and values: they start nothing and leave nothing behind, so that their files share a process. */
const pure = [
  "packages/core/test/{arrivals,call-state,call-window,codec,content-hash,copies,copy-bytes,counts,depth,failure,framing,idle-collector,leased-worker,lent-memory,lineage,lists,live-memory,logs,loose-ref,machine-memory,memory-pool,messages,named-remotes,placement*,requests,session,shared-ring,small-values,spin-wait,telemetry,terminal-text,undefined-options,values-property,wait-graph,waiting-line}.test.ts",
  "packages/cluster/test/host-output.test.ts",
  "packages/config-tree/test/*.test.ts",
  "packages/data-proto/test/**/*.test.ts",
  "packages/reward-manager-registry/test/{begin,dapo,golden,parameters,registry,reward-spec,score-sample,scorers}.test.ts",
  "packages/reward-loop/test/{agreement,chat-template,config,options,exchange}/*.test.ts",
  "packages/reward-loop/test/{faults/faults,limits/limits,manager/{flattened,submitted-sample},page,record/reward-version,worker/{brief-runs,demand,executor-watch,score-attempts,total-time}}.test.ts",
  "packages/trainer/test/*.test.ts",
  "packages/trainer/test/{config,data,tasks}/*.test.ts",
  "packages/trainer/test/{checkpoint/formats,policy/tiny-parts}.test.ts",
  "packages/trainer/test/tracking/{console,generations,reward-metrics,rollout-dump,tracking}.test.ts",
  "packages/trainer/test/fit/{actor-gradients,join-columns,mini-batch-size}.test.ts",
  "packages/rayling/test/cli-parts.test.ts",
  "packages/rayling/test/python/{columns,frames,messages,values}.test.ts",
  "test/bench/python.test.ts",
  "test/examples/rewards.test.ts",
  "test/workspace/{golden,house,layers,links,manifests,mutants,parity,public-names,suites,terminals}.test.ts",
];

/** The core battery runs on threads, and on these. */
const isolations = ["process", "shared", "tcp", "tls"] as const;
type Isolation = (typeof isolations)[number];
const isOverAgent = (name: Isolation): boolean => name === "tcp" || name === "tls";

/** What the runtime must do whatever its actors run in: the battery of the other isolations. */
const battery = ["test/core/**/*.test.ts", "packages/core/test/references.test.ts"];

const whole = (name: Isolation): string[] =>
  isOverAgent(name) ? [...battery, "test/conformance/**/*.test.ts"] : battery;

/** They hold threads, and watch them by shared memory; test/conformance has such cases for every isolation. */
const ofThreads = ["test/core/cancel.test.ts", "test/core/lifetime.test.ts"];

/**
 * What the gate runs on other isolations than threads: calls and their order, starts and deaths, big values, streams. Processes and shared threads are
 * also cases of test/conformance, test/core/process.test.ts and test/core/shared.test.ts, which the project `thread` runs.
 */
const essentials: Partial<Record<Isolation, string[]>> = {
  shared: ["test/core/failures.test.ts"],
  tcp: ["test/core/located.test.ts", "test/conformance/{actors,restart}.test.ts"],
  tls: ["test/conformance/streams.test.ts"],
};

/** Where an agent starts all processes, one counts files in a folder of its own, and an agent keeps them in its own. */
const ofOwnFolder = ["test/core/objects.test.ts", "test/conformance/table.test.ts"];

/** Tests that start hosts use the packages as they are published, built by test/fixtures/build-packages.ts: that is what users run, and it starts in half of the time. */
const published = {
  extends: true as const,
  ssr: {
    resolve: {
      conditions: ["built", "module", "node", "development|production"],
      externalConditions: ["built"],
    },
  },
};
// Collectors are driven by hand in tests of references.
const execArgv = ["--expose-gc", "--conditions=built"];
/** For the drivers and agents that tests start. */
const env = { NODE_OPTIONS: "--conditions=built" };

/** `--mode full` is `pnpm test:full`: every battery on every isolation, and the series that the gate does without. */
export default defineConfig(({ mode }) => {
  const isFull = mode === "full";
  const suite = isFull ? "full" : "gate";
  const onlyFull = isFull ? [] : ["**/*.full.test.ts"];
  return {
    test: {
      globalSetup: "test/fixtures/build-packages.ts",
      // Every file gets a process of its own: tests start and end threads of theirs.
      pool: "forks",
      // One file more than there are processors, for many tests wait: 801 s in place of 960 on two.
      maxWorkers: availableParallelism() + 1,
      sequence: { sequencer: LongFilesFirst },
      env: { RAYLING_TEST_SUITE: suite },
      // As for users, whose vitest does not transform what is installed.
      server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
      // No test asserts a time; this only keeps one that hangs from holding up the rest on a slow machine.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000 } },
      reporters: [
        "default",
        new WhereTimeWent({ isGate: !isFull }),
        ...(report === undefined ? [] : (["json"] as const)),
      ],
      ...(report === undefined ? {} : { outputFile: { json: report } }),
      projects: [
        {
          extends: true,
          test: {
            name: "pure",
            include: pure,
            isolate: false,
            typecheck: {
              enabled: true,
              include: ["test/**/*.test-d.ts"],
              tsconfig: "tsconfig.json",
            },
          },
        },
        {
          ...published,
          test: {
            name: "thread",
            execArgv,
            env,
            include: ["test/**/*.test.ts", "packages/*/test/**/*.test.ts"],
            exclude: [...configDefaults.exclude, ...pure, ...onlyFull],
          },
        },
        ...isolations
          .filter((name) => isFull || name in essentials)
          .map((name) => ({
            ...published,
            test: {
              name,
              execArgv,
              include: isFull ? whole(name) : (essentials[name] ?? []),
              exclude: [
                ...configDefaults.exclude,
                ...ofThreads,
                ...(isOverAgent(name) ? ofOwnFolder : []),
                ...onlyFull,
              ],
              env: {
                ...env,
                RAYLING_ISOLATION: name === "shared" ? "shared" : "process",
                RAYLING_TEST_OVER: name,
              },
              setupFiles: isOverAgent(name) ? ["test/fixtures/over-agent.ts"] : [],
            },
          })),
      ],
    },
  };
});
