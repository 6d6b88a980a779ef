/** Starts the gateway of a session, which is a Ray job. */
import { createHash } from "node:crypto";
import { RaySystemError } from "@rayling/core/cluster";
import { isOwnAddress } from "../own-addresses.ts";
import { JobsApi } from "../jobs/jobs-api.ts";
import { RuntimePackages } from "../jobs/runtime-packages.ts";
import { type Announced, announcement } from "./messages.ts";

/** The pause between two looks at the job's log, in ms. */
const lookMs = 150;

/** The last characters of a log that a message shows. */
const shownLog = 1500;

/**
 * How the driver reaches its gateway: on a machine of the cluster by a unix socket, on the machine
 * of the dashboard by the loopback, from another one by TLS.
 */
export type Reach = "unix" | "loopback" | "tls";

/** The start of a gateway. */
export interface GatewayOptions {
  /** The driver will show it. */
  readonly token: string;
  readonly namespace: string;
  /** How long the driver's machine may give no answer, in ms. */
  readonly timeoutMs: number;
  readonly reach: Reach;
}

/** A started gateway. */
export interface StartedGateway {
  /** For messages. */
  readonly name: string;
  readonly announced: Announced;
  /** Uploads again what Ray has removed with an earlier job, before this one ran. */
  keepPackages(): Promise<unknown>;
  /** Ends it, if its driver cannot. */
  stop(): Promise<void>;
}

/** Submits the job. Rejects with RaySystemError or AuthenticationError. */
export async function startGatewayJob(
  jobs: JobsApi,
  options: GatewayOptions,
): Promise<StartedGateway> {
  const packages = await RuntimePackages.read();
  const py_modules = await packages.upload(jobs);
  const jobId = await jobs.submit({
    entrypoint: entrypointOf(flagsOf(options)),
    runtimeEnv: { py_modules },
    metadata: { rayling: `driver ${process.pid}` },
  });
  const name = `the gateway, job ${jobId} of the Ray cluster at ${jobs.url},`;
  const stop = (): Promise<void> => jobs.stop(jobId);
  try {
    const announced = await announcedBy(jobs, jobId);
    checkReach(announced);
    return { name, announced, keepPackages: () => packages.upload(jobs), stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

/** The first Python on PATH may be another one than Ray's. */
function entrypointOf(flags: readonly string[]): string {
  const hasRay = "import importlib.util as u; raise SystemExit(u.find_spec('ray') is None)";
  return `IFS=:
for folder in $PATH; do
  for python in "$folder/python" "$folder/python3"; do
    if [ -x "$python" ] && "$python" -c "${hasRay}" 2>/dev/null; then
      exec "$python" -m rayling.on_ray ${flags.join(" ")}
    fi
  done
done
echo "no python on PATH has Ray: $PATH"
exit 1`;
}

/** The job's information is public: it has the digest of the token. */
function flagsOf({ token, namespace, timeoutMs, reach }: GatewayOptions): string[] {
  const digest = createHash("sha256").update(token).digest("hex");
  const quoted = `'${namespace.replaceAll("'", `'\\''`)}'`;
  return [
    `--token-sha256 ${digest}`,
    `--timeout ${timeoutMs / 1000}`,
    `--reach ${reach}`,
    ...(namespace === "" ? [] : [`--namespace ${quoted}`]),
  ];
}

async function announcedBy(jobs: JobsApi, jobId: string): Promise<Announced> {
  for (;;) {
    const state = await jobs.state(jobId);
    const logs = await jobs.logs(jobId);
    // The last line may be half written.
    const lines = logs.split("\n").slice(0, -1);
    const line = lines.find((one) => one.startsWith(announcement));
    if (line !== undefined) return JSON.parse(line.slice(announcement.length));
    if (JobsApi.isOver(state)) {
      const said = `${state.message}\n${logs.slice(-shownLog)}`.trim();
      throw new RaySystemError(
        `the gateway, job ${jobId} of the Ray cluster at ${jobs.url}, is ${state.status}: ${said}`,
      );
    }
    await jobs.pause(lookMs);
  }
}

/** @throws RaySystemError for a gateway that only its own machine reaches */
function checkReach({ host, fingerprint }: Announced): void {
  if (fingerprint !== undefined || isOwnAddress(host)) return;
  throw new RaySystemError(
    `the gateway is on another machine, ${host}, and the dashboard is reached by an address of this one: name the dashboard by an address of its own machine`,
  );
}
