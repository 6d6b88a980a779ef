/** A real Ray cluster of several nodes on this machine, and what runs there. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { vi } from "vitest";

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

/** What a cluster is made of. */
export interface ClusterShape {
  readonly nodes: readonly NodeShape[];
  /** Kinds of nodes that Ray's autoscaler may add, as its configuration has them. */
  readonly nodeTypes?: Readonly<Record<string, object>>;
  /** Variables for all of Ray. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Programs of Node, which machines of a cluster are without. */
const ofNode: ReadonlySet<string> = new Set(["node", "nodejs", "npm", "npx", "corepack"]);

/**
 * It asks for a token. Its machines have no Node, and pip finds no registry.
 */
export class RealCluster {
  /** The URL of its dashboard. */
  readonly url: string;
  /** The file with its token. */
  readonly tokenPath: string;
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
    this.tokenPath = join(folder, "token");
    this.#folder = folder;
    this.#ask = ask;
    this.#end = end;
  }

  /** @param python an interpreter that has Ray */
  static async start(
    python: string,
    { nodes, nodeTypes, env = {} }: ClusterShape,
  ): Promise<RealCluster> {
    // Paths of sockets are short.
    const temp = await mkdtemp("/tmp/rayling-ray-");
    await mkdir(join(temp, "ray"));
    const tokenPath = join(temp, "token");
    await writeFile(tokenPath, randomBytes(32).toString("hex"), { mode: 0o600 });
    const child = spawn(python, ["-B", program, JSON.stringify({ nodes, nodeTypes, temp })], {
      stdio: ["pipe", "pipe", "inherit"],
      env: {
        ...process.env,
        RAY_raylet_start_wait_time_s: "150",
        RAY_AUTH_MODE: "token",
        RAY_AUTH_TOKEN_PATH: tokenPath,
        RAY_USAGE_STATS_ENABLED: "0",
        // Ray would end processes when other programs fill the machine.
        RAY_memory_monitor_refresh_ms: "0",
        TMPDIR: temp,
        ...unreachable,
        ...env,
        // The entry point of a job is found there.
        PATH: `${dirname(python)}:${await programsWithoutNode(temp)}`,
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
    return this.allProcesses().filter((pid) => kinds[kind].test(textOf(`/proc/${pid}/cmdline`)));
  }

  /** Processes of Ray, and of sessions on it. */
  allProcesses(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => textOf(`/proc/${pid}/environ`).includes(this.#folder))
      .map(Number);
  }

  /** Resolves when none of its processes is left: what ends last may still write files. */
  async close(): Promise<void> {
    await this.#end();
    await vi.waitUntil(() => this.allProcesses().length === 0, { timeout: 60_000 });
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A registry at a closed port, for pip. */
const unreachable = {
  PIP_INDEX_URL: "http://127.0.0.1:9/simple",
  PIP_FIND_LINKS: "",
  PIP_NO_CACHE_DIR: "1",
  PIP_RETRIES: "0",
};

/** Returns a folder with the programs of this machine. */
async function programsWithoutNode(temp: string): Promise<string> {
  const folder = join(temp, "bin");
  await mkdir(folder);
  const names = (await readdir("/usr/bin")).filter((name) => !ofNode.has(name));
  await Promise.all(names.map((name) => symlink(join("/usr/bin", name), join(folder, name))));
  return folder;
}

/** Whether the process is there, and no zombie. */
export function isAlive(pid: number): boolean {
  return /^State:\s+[^Z\s]/m.test(textOf(`/proc/${pid}/status`));
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
