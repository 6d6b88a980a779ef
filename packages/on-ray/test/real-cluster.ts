/** A real Ray cluster of several nodes on this machine, and what runs there. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const program = join(import.meta.dirname, "cluster.py");

/** A node to start, in Ray's words. */
export interface NodeShape {
  readonly num_cpus: number;
  readonly num_gpus?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly resources?: Readonly<Record<string, number>>;
}

/** Command lines, whose parts end with a NUL; a host has set its title. */
const kinds = {
  any: /-m\0rayling\.on_ray\0|_ray_pkg_rayling_|^rayling host-|ray::Agent/,
  gateway: /-m\0rayling\.on_ray\0/,
  host: /^rayling host-/,
} as const;

interface Reply {
  readonly ok?: never;
  readonly error?: string;
}

export class RealCluster {
  /** The URL of its dashboard. */
  readonly url: string;
  readonly #folder: string;
  readonly #ask: (command: readonly unknown[]) => Promise<Reply>;
  readonly #end: () => Promise<void>;

  private constructor(
    folder: string,
    url: string,
    ask: (command: readonly unknown[]) => Promise<Reply>,
    end: () => Promise<void>,
  ) {
    this.url = url;
    this.#folder = folder;
    this.#ask = ask;
    this.#end = end;
  }

  /** @param python an interpreter that has Ray */
  static async start(
    python: string,
    nodes: readonly NodeShape[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<RealCluster> {
    // Paths of sockets are short.
    const temp = await mkdtemp("/tmp/rayling-ray-");
    await mkdir(join(temp, "ray"));
    const child = spawn(python, ["-B", program, JSON.stringify({ nodes, temp })], {
      stdio: ["pipe", "pipe", "inherit"],
      env: {
        ...process.env,
        RAY_raylet_start_wait_time_s: "150",
        RAY_AUTH_MODE: "disabled",
        RAY_USAGE_STATS_ENABLED: "0",
        TMPDIR: temp,
        ...env,
        // The entry point of a job is found there, and no Node.
        PATH: `${dirname(python)}:/usr/bin:/bin`,
        NODE_OPTIONS: "",
      },
    });
    const waiting: PromiseWithResolvers<Reply>[] = [Promise.withResolvers()];
    createInterface({ input: child.stdout }).on("line", (line) => {
      // Ray writes there, too.
      if (line.startsWith("{")) waiting.shift()?.resolve(JSON.parse(line));
    });
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    void ended.then(() => {
      for (const one of waiting) one.reject(new Error("the cluster has ended"));
    });
    const { ok: url } = await (waiting[0] as PromiseWithResolvers<Reply>).promise;
    const ask = (command: readonly unknown[]): Promise<Reply> => {
      const reply = Promise.withResolvers<Reply>();
      waiting.push(reply);
      child.stdin.write(`${JSON.stringify(command)}\n`);
      return reply.promise;
    };
    const end = async (): Promise<void> => {
      child.stdin.end();
      await ended;
      await rm(temp, { recursive: true, force: true });
    };
    return new RealCluster(temp, String(url), ask, end);
  }

  /** A command of cluster.py. */
  async do<T = unknown>(...command: readonly unknown[]): Promise<T> {
    const { ok, error } = await this.#ask(command);
    if (error !== undefined) throw new Error(error);
    return ok as T;
  }

  /** Processes of sessions on this cluster: gateways, agents, their guards, hosts. */
  processes(kind: keyof typeof kinds = "any"): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter(
        (pid) =>
          kinds[kind].test(textOf(`/proc/${pid}/cmdline`)) &&
          textOf(`/proc/${pid}/environ`).includes(this.#folder),
      )
      .map(Number);
  }

  async close(): Promise<void> {
    await this.#end();
  }
}

/** The process that started that one. */
export function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
}
