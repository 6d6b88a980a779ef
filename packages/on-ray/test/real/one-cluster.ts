/** The real cluster of one test file, and sessions on it. */
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { afterAll, afterEach, beforeAll, vi } from "vitest";
import {
  orSkip,
  type PackagedPython,
  pythonWith,
} from "../../../rayling/test/python/python-venv.ts";
import { type ClusterShape, RealCluster } from "./cluster.ts";
import { figure, tookSince } from "./figures.ts";

/** What Python has on the machines of a cluster, for pip. */
export const rayPackages = ["ray[default]", "numpy", "pytest"] as const;

/** Skips a test, with the reason. */
type Skip = (reason: string) => never;

/** The cluster of a test file. */
export interface OneCluster {
  /** Returns it, or skips the test where there is none. */
  readonly there: (skip: Skip) => RealCluster;
  /** Returns it with a session on it, which ends with the test. */
  readonly session: (skip: Skip, options?: ray.InitOptions) => Promise<RealCluster>;
  /** Returns its interpreter of Python. */
  readonly python: (skip: Skip) => string;
}

/** Starts a cluster before the tests of the calling file, and ends it after them. */
export function oneCluster(
  shape: ClusterShape,
  packages: readonly string[] = rayPackages,
): OneCluster {
  let found: PackagedPython;
  let cluster: RealCluster | undefined;
  enableOnRay();
  beforeAll(async () => {
    found = await pythonWith(packages);
    if ("problem" in found) return;
    cluster = await RealCluster.start(found.python, shape);
    vi.stubEnv("RAY_AUTH_MODE", "token");
    vi.stubEnv("RAY_AUTH_TOKEN_PATH", cluster.tokenPath);
    figure("Ray", String(await cluster.do("run", "answer = ray.__version__")));
  });
  afterEach(() => ray.shutdown());
  afterAll(() => cluster?.close());
  const there = (skip: Skip): RealCluster => {
    orSkip(found, skip);
    if (cluster === undefined) throw new Error("there is no cluster");
    return cluster;
  };
  return {
    there,
    async session(skip, options = {}) {
      const running = there(skip);
      const startMs = performance.now();
      await ray.init({ address: `ray+${running.url}`, ...options });
      tookSince(startMs, "init");
      return running;
    },
    python: (skip) => orSkip(found, skip),
  };
}
