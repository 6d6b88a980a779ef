/**
 * A small Ray of the tests' own: the Jobs API over HTTP, and a gateway that speaks the protocol.
 * Nodes have amounts and labels; agents are real ones, in this process.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttp, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { FakePython } from "./fake-python.ts";
import { type Agent, type AgentOptions, startAgent } from "@rayling/cluster";

interface Demand {
  readonly hold: Readonly<Record<string, number>>;
  readonly strategy: { readonly kind: string; readonly nodeId?: string; readonly soft?: boolean };
  readonly selectors: readonly Readonly<Record<string, { readonly in?: readonly string[] }>>[];
}

interface Reservation {
  readonly demand: Demand;
  readonly answer: (said: object) => void;
  node: FakeNode | undefined;
}

/** A placement group; each bundle is on another node. */
interface Group {
  readonly bundles: readonly Readonly<Record<string, number>>[];
  nodes: FakeNode[] | undefined;
}

interface FakeNode {
  readonly id: string;
  readonly resources: Record<string, number>;
  readonly available: Record<string, number>;
  readonly labels: Record<string, string>;
  alive: boolean;
  agent: Agent | undefined;
}

export class FakeRay {
  readonly jobs: { readonly id: string; readonly entrypoint: string; status: string }[] = [];
  /** Names of uploaded packages. */
  readonly packages: Set<string> = new Set();
  readonly nodes: FakeNode[] = [];
  readonly reservations: Map<string, Reservation> = new Map();
  readonly groups: Map<string, Group> = new Map();
  /** How many reservations of one demand were asked for. */
  made = 0;
  /** The most that was reserved of a name at once. */
  readonly most: Record<string, number> = {};
  /** Whether an earlier driver has brought the packages of the runtime. */
  hasRuntime = true;
  /** And that of Node. */
  hasNode = true;
  /** Names of packages that were asked for. */
  readonly asked: Set<string> = new Set();
  token: string | undefined;
  /** So many gateways end before their driver comes. */
  missed = 0;
  protocol = 1;
  url = "";
  /** Its processes stand still, and its kernel goes on. */
  isFrozen = false;
  /** Why agents do not start, as long as they do not. */
  agentProblem: string | undefined;
  readonly python: FakePython = new FakePython();
  readonly #servers: Server[] = [];
  readonly #folders: string[] = [];
  readonly #sockets: Set<Socket> = new Set();
  #log = "";

  static async start(...nodes: readonly Readonly<Record<string, number>>[]): Promise<FakeRay> {
    const fake = new FakeRay();
    for (const resources of nodes) fake.addNode(resources);
    const http = createHttp((request, response) => {
      void fake.#answer(request).then(([status, said]) => {
        response.writeHead(status).end(said === undefined ? "" : JSON.stringify(said));
      });
    });
    fake.#servers.push(http);
    fake.url = `http://127.0.0.1:${await listening(http)}`;
    return fake;
  }

  get driver(): Socket | undefined {
    return [...this.#sockets].at(-1);
  }

  addNode(
    resources: Readonly<Record<string, number>>,
    labels: Readonly<Record<string, string>> = {},
  ): FakeNode {
    const id = `ray${this.nodes.length}`;
    const node: FakeNode = {
      id,
      resources: { ...resources },
      available: { ...resources },
      labels: { ...labels, "ray.io/node-id": id },
      alive: true,
      agent: undefined,
    };
    this.nodes.push(node);
    this.#tellNodes();
    this.#place();
    return node;
  }

  async loseNode(node: FakeNode): Promise<void> {
    node.alive = false;
    for (const [name, one] of this.reservations) {
      if (one.node === node) this.reservations.delete(name);
    }
    for (const group of this.groups.values()) {
      if (group.nodes?.includes(node) !== true) continue;
      this.#giveBack(group);
    }
    this.#tellNodes();
    this.#tell({ event: "node-gone", node: node.id, reason: "its machine is gone" });
    await node.agent?.close();
    this.#place();
  }

  /** Somebody else's use. */
  take(node: FakeNode, name: string, amount: number): void {
    node.available[name] = (node.available[name] ?? 0) - amount;
    this.#tellNodes();
    this.#place();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.nodes.map(async ({ agent }) => agent?.close()));
    for (const server of this.#servers) server.close();
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true });
  }

  async #answer(request: IncomingMessage): Promise<[number, object?]> {
    const body: Buffer[] = [];
    for await (const part of request) body.push(Buffer.from(part));
    if (this.isFrozen) await new Promise(() => undefined);
    const { method, url = "", headers } = request;
    if (this.token !== undefined && headers.authorization !== `Bearer ${this.token}`) return [401];
    const name = url.split("/").at(-1) ?? "";
    if (url.startsWith("/api/packages/gcs/")) {
      this.asked.add(name);
      const isBrought = name.includes("rayling_node") ? this.hasNode : this.hasRuntime;
      const isThere = this.packages.has(name) || (isBrought && name.includes("rayling"));
      if (method === "GET") return isThere ? [200] : [404];
      this.packages.add(name);
      return [200];
    }
    if (method === "POST" && url === "/api/jobs/") {
      const { entrypoint } = JSON.parse(Buffer.concat(body).toString());
      const id = `job${this.jobs.length}`;
      this.jobs.push({ id, entrypoint, status: "RUNNING" });
      await this.#startGateway(id, entrypoint);
      return [200, { submission_id: id }];
    }
    const job = this.jobs.find(({ id }) => url.startsWith(`/api/jobs/${id}`));
    if (job === undefined) return [404];
    if (url.endsWith("/stop")) job.status = "STOPPED";
    return [200, url.endsWith("/logs") ? { logs: this.#log } : { status: job.status, message: "" }];
  }

  async #startGateway(jobId: string, entrypoint: string): Promise<void> {
    const digest = /--token-sha256 (\w+)/.exec(entrypoint)?.[1];
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      let isWelcome = false;
      createInterface({ input: socket })
        .on("line", (line) => {
          const said = JSON.parse(line);
          if (this.isFrozen) return;
          if (isWelcome) {
            if ("id" in said) this.#do(socket, said);
            return;
          }
          isWelcome = createHash("sha256").update(String(said.token)).digest("hex") === digest;
          if (!isWelcome) {
            socket.destroy();
            return;
          }
          this.#tellNodes();
          this.#tell({ event: "welcome", protocol: this.protocol, ray: "0" });
        })
        .on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        this.#end(jobId);
      });
      socket.on("end", () => this.isFrozen || socket.end());
    });
    this.#servers.push(server);
    const place = entrypoint.includes("--reach unix")
      ? { path: await this.#listenOnSocket(server) }
      : { port: await listening(server) };
    const said = { protocol: 1, host: "127.0.0.1", ...place };
    this.#log = `RAYLING_GATEWAY ${JSON.stringify(said)}\n`;
    if (this.missed === 0) return;
    this.missed -= 1;
    server.close();
  }

  async #listenOnSocket(server: Server): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "fake-gateway-"));
    this.#folders.push(folder);
    server.listen(join(folder, "socket"));
    await once(server, "listening");
    return join(folder, "socket");
  }

  /** Its driver is gone. */
  #end(jobId: string): void {
    const job = this.jobs.find(({ id }) => id === jobId);
    if (job !== undefined) job.status = "SUCCEEDED";
    for (const name of [...this.reservations.keys(), ...this.groups.keys()]) this.#release(name);
    for (const node of this.nodes) {
      void node.agent?.close();
      node.agent = undefined;
    }
  }

  #do(socket: Socket, { id, op, with: given }: { id: number; op: string; with: never }): void {
    const answer = (said: object): void =>
      void socket.write(`${JSON.stringify({ id, ...said })}\n`);
    this.#run(op, given, answer).catch((error: Error) => {
      answer({ error: { type: "RaylingError", message: error.message } });
    });
  }

  async #run(op: string, given: never, answer: (said: object) => void): Promise<void> {
    if (op === "look") {
      this.#tellNodes();
      return answer({ ok: null });
    }
    if (op === "ping") return answer({ ok: null });
    if (op.startsWith("python_")) return answer({ ok: await this.python.do(op, given) });
    if (op === "reserve") {
      const { reservation, demand } = given as { reservation: string; demand: Demand };
      this.made += 1;
      this.reservations.set(reservation, { demand, answer, node: undefined });
      return this.#place();
    }
    if (op === "reserve_group") {
      const group = given as { reservation: string } & Group;
      this.groups.set(group.reservation, { bundles: group.bundles, nodes: undefined });
      answer({ ok: null });
      return this.#place();
    }
    if (op === "release") {
      const { reservation } = given as { reservation: string };
      this.#release(reservation);
      return answer({ ok: null });
    }
    const { node: nodeId, options } = given as { node: string; options: AgentOptions };
    if (this.agentProblem !== undefined) throw new Error(this.agentProblem);
    const node = this.nodes.find((one) => one.id === nodeId && one.alive);
    if (node === undefined) throw new Error(`Ray has no living node ${nodeId}`);
    const agent = await startAgent({ ...options, nodeName: node.id });
    node.agent = agent;
    void agent.closed.then(() => {
      if (node.agent !== agent || !node.alive) return;
      node.agent = undefined;
      this.#tell({ event: "agent-gone", node: node.id, reason: "was ended" });
    });
    answer({ ok: { address: agent.address } });
  }

  #release(name: string): void {
    const group = this.groups.get(name);
    if (group !== undefined) {
      this.groups.delete(name);
      this.#giveBack(group);
      this.#place();
    }
    const one = this.reservations.get(name);
    this.reservations.delete(name);
    if (one === undefined) return;
    if (one.node === undefined) return one.answer({ ok: { node: null } });
    for (const [resource, amount] of Object.entries(one.demand.hold)) {
      one.node.available[resource] = (one.node.available[resource] ?? 0) + amount;
    }
    this.#tellNodes();
    this.#place();
  }

  #giveBack(group: Group): void {
    for (const [index, node] of (group.nodes ?? []).entries()) {
      for (const [resource, amount] of Object.entries(group.bundles[index] ?? {})) {
        node.available[resource] = (node.available[resource] ?? 0) + amount;
      }
    }
    group.nodes = undefined;
  }

  #placeGroup(name: string, group: Group): void {
    const strategy = { kind: "DEFAULT" };
    const free = new Set(this.nodes);
    const nodes = group.bundles.flatMap((hold) => {
      const node = [...free].find((one) => fits(one, { hold, strategy, selectors: [] }));
      if (node !== undefined) free.delete(node);
      return node ?? [];
    });
    if (nodes.length < group.bundles.length) return;
    group.nodes = nodes;
    for (const [index, node] of nodes.entries()) {
      for (const [resource, amount] of Object.entries(group.bundles[index] ?? {})) {
        node.available[resource] = (node.available[resource] ?? 0) - amount;
      }
    }
    this.#tell({ event: "group-placed", group: name, nodes: nodes.map(({ id }) => id) });
  }

  #place(): void {
    for (const [name, group] of this.groups) {
      if (group.nodes === undefined) this.#placeGroup(name, group);
    }
    for (const one of this.reservations.values()) {
      if (one.node !== undefined) continue;
      const { hold, strategy } = one.demand;
      if (strategy.kind === "NODE_AFFINITY" && strategy.soft !== true) {
        const isThere = this.nodes.some(({ id, alive }) => alive && id === strategy.nodeId);
        if (!isThere) one.answer({ ok: { refused: `node ${strategy.nodeId} is gone` } });
      }
      const node = this.nodes.find((candidate) => fits(candidate, one.demand));
      if (node === undefined) continue;
      one.node = node;
      for (const [resource, amount] of Object.entries(hold)) {
        node.available[resource] = (node.available[resource] ?? 0) - amount;
        const used = this.#used(resource);
        this.most[resource] = Math.max(this.most[resource] ?? 0, used);
      }
      const gpus = "GPU" in hold ? { gpus: "0,3" } : {};
      one.answer({ ok: { node: node.id, ...gpus } });
    }
  }

  #used(resource: string): number {
    const held = [...this.reservations.values()].filter(({ node }) => node !== undefined);
    return held.reduce((sum, { demand }) => sum + (demand.hold[resource] ?? 0), 0);
  }

  #tellNodes(): void {
    const nodes = this.nodes.map(({ id, alive, resources, available, labels }) => {
      const known = { id, alive, resources, available, labels };
      return { ...known, name: id, hostname: "fake", address: "127.0.0.1", deathReason: "gone" };
    });
    this.#tell({ event: "nodes", nodes });
  }

  #tell(event: object): void {
    for (const socket of this.#sockets) socket.write(`${JSON.stringify(event)}\n`);
  }
}

function fits(node: FakeNode, { hold, strategy, selectors }: Demand): boolean {
  const labels = selectors[0] ?? {};
  return (
    node.alive &&
    (strategy.kind !== "NODE_AFFINITY" || strategy.nodeId === node.id) &&
    Object.entries(labels).every(([name, one]) => one.in?.includes(node.labels[name] ?? "")) &&
    Object.entries(hold).every(([name, amount]) => (node.available[name] ?? 0) >= amount)
  );
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
