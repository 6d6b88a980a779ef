/**
 * The address of a Ray cluster as `init` takes it, and the token that Ray's own tools would show
 * there.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { inHome, InvalidOptionError, RaySystemError } from "@rayling/core/cluster";

/** Where a session's cluster is. */
export type ClusterAddress =
  /** The driver is on a machine of the cluster. */
  | { readonly kind: "inside" }
  /** `url`: that of Ray's dashboard, without a slash at its end. */
  | { readonly kind: "dashboard"; readonly url: string };

/** @throws InvalidOptionError */
export function parseClusterAddress(text: string): ClusterAddress {
  if (text === "auto") return { kind: "inside" };
  const url = URL.parse(text.replace(/^ray\+/, ""));
  const isComplete =
    url !== null &&
    /^ray\+https?:\/\//.test(text) &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    url.hash === "";
  if (!isComplete) {
    throw new InvalidOptionError(
      "address",
      'option address must be ray+http://host:port, the address of Ray\'s dashboard, ray+https:// or "auto"; a token belongs in RAY_AUTH_TOKEN',
    );
  }
  if (url.port === "" && url.protocol === "http:") url.port = "8265";
  return { kind: "dashboard", url: url.href.replace(/\/+$/, "") };
}

const askRay = `
import ray
print("DASHBOARD", ray.init(address="auto", logging_level="error", log_to_driver=False).dashboard_url)
`;

/** How long Ray may take to say where its dashboard is, in ms: by itself it tries for ever. */
const ownMs = 120_000;

/**
 * Asks Ray on this machine for the URL of the cluster's dashboard. Rejects with RaySystemError when
 * `python` on PATH has no Ray, no cluster runs here, or Ray does not answer within 2 minutes; with
 * the reason of the signal.
 */
export async function ownDashboard(signal: AbortSignal): Promise<string> {
  try {
    const limits = { timeout: ownMs, killSignal: "SIGKILL", signal } as const;
    const { stdout } = await promisify(execFile)("python", ["-c", askRay], limits);
    const found = /^DASHBOARD (\S+)$/m.exec(stdout)?.[1];
    if (found !== undefined && found !== "None") return `http://${found}`;
  } catch (error) {
    signal.throwIfAborted();
    const said = error instanceof Error ? error.message.trim().split("\n").at(-1) : String(error);
    throw new RaySystemError(`no Ray cluster is found on this machine: ${said}`, { cause: error });
  }
  throw new RaySystemError("the Ray cluster on this machine runs without a dashboard");
}

/**
 * Returns the bearer token by Ray's rules: RAY_AUTH_TOKEN, the file RAY_AUTH_TOKEN_PATH, or
 * `~/.ray/auth_token`; undefined when there is none.
 */
export function rayToken(): string | undefined {
  const given = process.env["RAY_AUTH_TOKEN"]?.trim() ?? "";
  if (given !== "") return given;
  try {
    const path = process.env["RAY_AUTH_TOKEN_PATH"] ?? inHome("the token", ".ray", "auth_token");
    const kept = readFileSync(path, "utf8").trim();
    return kept === "" ? undefined : kept;
  } catch {
    // A cluster without tokens needs none.
    return undefined;
  }
}
