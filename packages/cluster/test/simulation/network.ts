/**
 * The network of a simulated world, in place of node:net: connections between processes, with delays, and what can go wrong with them.
 *
 * Bytes of one direction arrive in order, or the connection ends, as TCP has it. What a fault does it does to connections: `cut` (both ends hear of it), `half-open`
 * (one end hears of it, the other never does), `broken-pipe` (the same, and what the other writes fails), `hold` (nothing arrives for a while, then all does), `one-way` (the same of one direction), `corrupt` (what arrives
 * is not what was sent, which the receiver's TLS notices). New connections may be refused, or be taken by nobody.
 */
import { EventEmitter } from "node:events";
import net from "node:net";
import { syncBuiltinESMExports } from "node:module";
import { Duplex } from "node:stream";
import { currentProcess, inProcess, type Process, type World } from "./world.ts";

export type Fault = "cut" | "half-open" | "broken-pipe" | "hold" | "one-way" | "corrupt";

interface Chunk {
  readonly bytes: Buffer | "end";
  readonly arrivesAtMs: number;
  readonly taken: (() => void) | undefined;
}

/** From one end to the other. */
interface Direction {
  readonly queue: Chunk[];
  /** Nothing arrives before. */
  heldUntilMs: number;
  lastAtMs: number;
  waitingBytes: number;
  isLost: boolean;
  isPumping: boolean;
}

/** What becomes of connections that are made from now on: `reset` takes them and ends them, `mute` takes them and says nothing, `silent` does not take them. */
export type HostListener = "open" | "refused" | "reset" | "silent" | "mute";

/** When a system asks again that gets no answer, after the beginning. */
const againMs = [1000, 3000, 7000];

/** For so long a system sends again what got no answer (Linux: net.ipv4.tcp_retries2). */
const resendingMs = 15 * 60_000;

export interface Weather {
  /** Of one way, in ms. */
  readonly latencyMs: readonly [number, number];
  /** So many bytes are taken before the sender has to wait. */
  readonly windowBytes: number;
}

/** Of a connection: from the dialling (at a time when somebody can be reached) to its end or its first fault. Of an outage: all of it. */
interface Span {
  readonly beganMs: number;
  readonly endedMs: number;
}

/** The connections from one process to the port of another. */
interface Pair {
  /** When the first was dialled: before, nobody was kept from anybody. */
  readonly sinceMs: number;
  readonly spans: Span[];
  /** When a fault hit one of them that still carried something. */
  readonly strokes: number[];
}

export class Network {
  readonly world: World;
  readonly weather: Weather;
  readonly servers: Map<number, SimulatedServer> = new Map();
  readonly connections: Set<Connection> = new Set();
  /** What happens to who dials: by the port, or all. */
  door: (port: number) => HostListener = () => "open";
  /** Of connections that there were. */
  count = 0;
  /** By the name of the dialling process and the port. */
  readonly #pairs: Map<string, Pair> = new Map();
  /** When nobody reached anybody, in order. */
  readonly #outages: Span[] = [];
  #ports = 1000;

  constructor(world: World, weather: Weather) {
    this.world = world;
    this.weather = weather;
  }

  freePort(): number {
    return this.#ports++;
  }

  /** Its sockets go with it, as those of a killed process do; or nobody hears of it, where its machine is lost. */
  ended(process: Process, isSilent: boolean): void {
    for (const [port, server] of this.servers) {
      if (server.process === process) this.servers.delete(port);
    }
    for (const connection of this.connections) connection.processEnded(process, isSilent);
  }

  pair(dialler: Process | undefined, port: number): Pair {
    const key = `${dialler?.name} ${port}`;
    const known = this.#pairs.get(key) ?? { sinceMs: this.world.nowMs, spans: [], strokes: [] };
    this.#pairs.set(key, known);
    return known;
  }

  /** From now on, nobody reaches anybody for so long. */
  away(fault: Fault, door: HostListener, forMs: number): void {
    const { nowMs } = this.world;
    this.#outages.push({ beganMs: nowMs, endedMs: nowMs + forMs });
    this.door = () => door;
    for (const connection of this.connections) connection.suffer(fault, forMs);
  }

  /**
   * Whether what went wrong kept two processes apart for `forMs`, from one fault or outage on and before now. No connection between them lasted for `leastMs` within that
   * time, and faults and outages together left no gap of `leastMs` for a new one. Without a fault within that time the answer is no, however little the outages left: a
   * network that only flaps must cost nothing.
   */
  keptApart(leastMs: number, forMs: number): boolean {
    return [...this.#pairs.values()].some(({ sinceMs, spans, strokes }) => {
      const outages = this.#outages.filter(({ endedMs }) => endedMs > sinceMs);
      const blows = [
        ...outages.map((outage) => ({ ...outage, beganMs: Math.max(outage.beganMs, sinceMs) })),
        ...strokes.map((atMs) => ({ beganMs: atMs, endedMs: atMs })),
      ];
      blows.sort((left, right) => left.beganMs - right.beganMs);
      return blows.some(({ beganMs: fromMs }) => {
        const toMs = fromMs + forMs;
        const isWithin = (atMs: number): boolean => fromMs <= atMs && atMs < toMs;
        const lasted = ({ beganMs, endedMs }: Span): boolean =>
          Math.min(endedMs, toMs) - Math.max(beganMs, fromMs) >= leastMs;
        if (toMs > this.world.nowMs || !strokes.some(isWithin) || spans.some(lasted)) return false;
        let quietSinceMs = fromMs;
        for (const { beganMs, endedMs } of blows.filter((blow) => isWithin(blow.beganMs))) {
          if (beganMs - quietSinceMs >= leastMs) return false;
          quietSinceMs = Math.max(quietSinceMs, endedMs);
        }
        return toMs - quietSinceMs < leastMs;
      });
    });
  }

  install(): void {
    Object.assign(net, {
      connect: (options: { readonly port: number }) => new Connection(this, options.port).near,
      createServer: (_options: unknown, onSocket: (socket: SimulatedSocket) => void) =>
        new SimulatedServer(this, onSocket),
    });
    syncBuiltinESMExports();
  }

  uninstall(): void {
    Object.assign(net, real);
    syncBuiltinESMExports();
  }
}

const real = { connect: net.connect, createServer: net.createServer };

class SimulatedServer extends EventEmitter {
  readonly process: Process | undefined = currentProcess();
  readonly #network: Network;
  readonly #onSocket: (socket: SimulatedSocket) => void;
  #port = 0;

  constructor(of: Network, onSocket: (socket: SimulatedSocket) => void) {
    super();
    this.#network = of;
    this.#onSocket = onSocket;
  }

  listen({ port }: { readonly port: number }, onListening: () => void): this {
    this.#port = port === 0 ? this.#network.freePort() : port;
    this.#network.servers.set(this.#port, this);
    this.#network.world.later(0.1, onListening);
    return this;
  }

  address(): { readonly port: number } {
    return { port: this.#port };
  }

  accept(socket: SimulatedSocket): void {
    this.#onSocket(socket);
  }

  unref(): this {
    return this;
  }

  close(): this {
    if (this.#network.servers.get(this.#port) === this) this.#network.servers.delete(this.#port);
    return this;
  }
}

export class Connection {
  readonly near: SimulatedSocket;
  readonly port: number;
  readonly number: number;
  far: SimulatedSocket | undefined;
  readonly #network: Network;
  /** What was dialled in an outage may be made after it, and begins then. */
  readonly #span = { beganMs: Infinity, endedMs: Infinity };
  readonly #ways: { readonly near: Direction; readonly far: Direction } = {
    near: newDirection(),
    far: newDirection(),
  };

  constructor(of: Network, port: number) {
    this.#network = of;
    this.port = port;
    this.number = of.count++;
    this.near = new SimulatedSocket(this);
    // What is left of the turn in which a process ended.
    if (this.near.process?.isAlive === false) return;
    of.connections.add(this);
    of.pair(this.near.process, port).spans.push(this.#span);
    this.#knock(0);
  }

  #knock(times: number): void {
    const of = this.#network;
    const { world } = of;
    const { port } = this;
    const door = of.door(port);
    world.tell(
      () => `connection ${this.number}: ${this.near.process?.name} dials ${port} (${door})`,
    );
    const nextMs = againMs[times];
    if (door === "silent") {
      if (nextMs !== undefined) {
        world.after(
          nextMs - (againMs[times - 1] ?? 0),
          () => {
            if (!this.near.destroyed) this.#knock(times + 1);
          },
          undefined,
        );
      }
      return;
    }
    if (door === "open") this.#span.beganMs = world.nowMs;
    world.after(this.#latencyMs(), () => this.#answered(door), this.near.process);
  }

  #answered(door: HostListener): void {
    const { port, near } = this;
    const { world, servers } = this.#network;
    if (near.destroyed) return;
    const process = servers.get(port)?.process;
    if (door === "refused" || process?.isAlive !== true) return this.#fail(near, "ECONNREFUSED");
    if (door === "mute") this.#lose();
    if (door === "reset") {
      world.after(this.#latencyMs(), () => this.#fail(near, "ECONNRESET"), undefined);
    }
    if (door !== "open") return near.connected();
    // The system takes it at once, and the thread when it comes to it.
    const far = inProcess(process, () => new SimulatedSocket(this));
    this.far = far;
    far.connected();
    near.connected();
    const accept = (): void => {
      if (!far.destroyed) servers.get(port)?.accept(far);
    };
    world.after(0.1, accept, process);
  }

  /** What this end sends goes that way. */
  #wayFrom(end: SimulatedSocket): Direction {
    return end === this.near ? this.#ways.near : this.#ways.far;
  }

  #other(end: SimulatedSocket): SimulatedSocket | undefined {
    return end === this.near ? this.far : this.near;
  }

  #latencyMs(): number {
    return this.#network.world.random.between(...this.#network.weather.latencyMs);
  }

  carry(from: SimulatedSocket, bytes: Buffer | "end", taken?: () => void): void {
    const { world, weather } = this.#network;
    const way = this.#wayFrom(from);
    const size = bytes === "end" ? 0 : bytes.length;
    const isFull = way.waitingBytes + size > weather.windowBytes;
    way.lastAtMs = Math.max(way.lastAtMs, world.nowMs + this.#latencyMs());
    way.queue.push({ bytes, arrivesAtMs: way.lastAtMs, taken: isFull ? taken : undefined });
    way.waitingBytes += size;
    if (!isFull && taken !== undefined) process.nextTick(taken);
    this.#pump(from);
  }

  #pump(from: SimulatedSocket): void {
    const way = this.#wayFrom(from);
    const [first] = way.queue;
    if (first === undefined || way.isPumping || way.isLost) return;
    way.isPumping = true;
    const { world } = this.#network;
    const to = this.#other(from);
    const atMs = Math.max(first.arrivesAtMs, way.heldUntilMs);
    world.after(
      atMs - world.nowMs,
      () => {
        way.isPumping = false;
        if (way.isLost) return;
        if (way.heldUntilMs <= world.nowMs) {
          way.queue.shift();
          if (first.bytes !== "end") way.waitingBytes -= first.bytes.length;
          if (first.taken !== undefined) world.after(0.01, first.taken, from.process);
          if (to?.destroyed === false) to.push(first.bytes === "end" ? null : first.bytes);
          // Nobody is there any more, and its system says so.
          else if (first.bytes !== "end") return this.#fail(from, "ECONNRESET");
        }
        this.#pump(from);
      },
      to?.process,
    );
  }

  /** That end is gone, for whatever reason. */
  closed(end: SimulatedSocket): void {
    const other = this.#other(end);
    this.#ended();
    this.#network.world.tell(
      () =>
        `connection ${this.number}: ${end.process?.name} closes it (${end.errored?.message ?? ""})`,
    );
    if (other === undefined || other.destroyed) {
      this.#network.connections.delete(this);
      return;
    }
    if (!end.isSilent) this.carry(end, "end");
  }

  processEnded(process: Process, isSilent: boolean): void {
    for (const end of [this.near, this.far]) {
      if (end === undefined || end.process !== process || end.destroyed) continue;
      end.isSilent = isSilent;
      end.destroy();
      const other = this.#other(end);
      if (isSilent && other !== undefined) {
        this.#wayFrom(other).isLost = true;
        this.#unanswered(other);
      }
    }
  }

  /** The systems of both machines probe what nothing comes over, and send again what got no answer. */
  #unanswered(end: SimulatedSocket): void {
    const { world } = this.#network;
    const over = (): void => this.#fail(end, "ETIMEDOUT");
    const probed = (): void => {
      if (this.#wayFrom(end).queue.length === 0) return over();
      world.after(resendingMs, over, undefined);
    };
    world.after(15_000, probed, undefined);
  }

  #fail(end: SimulatedSocket | undefined, code: string): void {
    if (end === undefined || end.destroyed || end.process?.isAlive === false) return;
    inProcess(end.process as Process, () => end.destroy(failure(code)));
  }

  /** One fault hits this connection alone. @param ms how long, where it passes */
  strike(fault: Fault, ms: number): void {
    const isLost = this.#ways.near.isLost && this.#ways.far.isLost;
    if (!isLost) {
      this.#network.pair(this.near.process, this.port).strokes.push(this.#network.world.nowMs);
    }
    this.suffer(fault, ms);
  }

  /** @param ms how long, where it passes */
  suffer(fault: Fault, ms: number): void {
    const { world } = this.#network;
    this.#ended();
    const [left, right] = world.random.chance(0.5) ? [this.near, this.far] : [this.far, this.near];
    switch (fault) {
      case "cut":
        if (left !== undefined) left.isSilent = true;
        if (right !== undefined) right.isSilent = true;
        this.#lose();
        this.#fail(left, "ECONNRESET");
        world.after(this.#latencyMs(), () => this.#fail(right, "ECONNRESET"), undefined);
        break;
      case "half-open":
      case "broken-pipe":
        if (left !== undefined) left.isSilent = true;
        if (right !== undefined && fault === "broken-pipe") right.isBroken = true;
        this.#lose();
        this.#fail(left, "ECONNRESET");
        break;
      case "hold":
        for (const way of [this.#ways.near, this.#ways.far]) {
          way.heldUntilMs = Math.max(way.heldUntilMs, world.nowMs + ms);
        }
        break;
      case "one-way": {
        const way = left === undefined ? this.#ways.near : this.#wayFrom(left);
        way.heldUntilMs = Math.max(way.heldUntilMs, world.nowMs + ms);
        break;
      }
      case "corrupt":
        // The other end hears of it as of any that closes.
        this.#fail(left, "ERR_SSL_SSL/TLS_ALERT_BAD_RECORD_MAC");
        break;
    }
  }

  #ended(): void {
    this.#span.endedMs = Math.min(this.#span.endedMs, this.#network.world.nowMs);
  }

  #lose(): void {
    this.#ways.near.isLost = true;
    this.#ways.far.isLost = true;
  }
}

function newDirection(): Direction {
  return {
    queue: [],
    heldUntilMs: 0,
    lastAtMs: 0,
    waitingBytes: 0,
    isLost: false,
    isPumping: false,
  };
}

function failure(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code} (simulated)`), { code });
}

type Done = (error?: Error | null) => void;

/** One end, with what a socket of Node has that is used. */
export class SimulatedSocket extends Duplex {
  readonly process: Process | undefined = currentProcess();
  readonly remoteAddress = "127.0.0.1";
  /** The other end is not to hear of its end. */
  isSilent = false;
  /** What is written fails, and nothing else says so. */
  isBroken = false;
  readonly #connection: Connection;
  #isConnected = false;
  #early: (() => void)[] = [];

  constructor(connection: Connection) {
    super({ allowHalfOpen: false });
    this.#connection = connection;
    // It may end before anybody has it.
    this.on("error", () => undefined);
  }

  connected(): void {
    this.#isConnected = true;
    inProcess(this.process as Process, () => {
      this.emit("connect");
      for (const send of this.#early) send();
      this.#early = [];
    });
  }

  #send(bytes: Buffer | "end", done: Done): void {
    const send = (): void => {
      if (this.isBroken) {
        process.nextTick(() => done(failure("EPIPE")));
      } else if (bytes === "end") {
        this.#connection.carry(this, bytes);
        done();
      } else {
        this.#connection.carry(this, bytes, () => done());
      }
    };
    if (this.#isConnected) send();
    else this.#early.push(send);
  }

  override _read(): void {
    // What arrives is pushed.
  }

  override _write(chunk: Buffer, _encoding: unknown, done: Done): void {
    this.#send(Buffer.from(chunk), done);
  }

  override _writev(chunks: readonly { readonly chunk: Uint8Array }[], done: Done): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _final(done: Done): void {
    this.#send("end", done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#connection.closed(this);
    done(error);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
