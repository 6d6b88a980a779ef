/**
 * One seed: a session on one or two machines, actors that are called, and what goes wrong meanwhile. Returns what should not have been.
 *
 * Seeds are of several kinds (`Weather`): in most of them nothing may be lost, because nobody dies and the network never keeps everybody away for as long as
 * there is patience; in the others what is lost is told so, once, and nothing waits for ever.
 */
import { finalized } from "./no-finalization.ts";
import { getValues } from "../../../core/src/caller/waits/get-and-wait.ts";
import { Wait } from "../../../core/src/caller/waits/stuck-watch.ts";
import { type ObjectRefGenerator } from "../../../core/src/caller/stream.ts";
import type { ActorInfo } from "../../../core/src/rpc/directory.ts";
import { threadSlot } from "../../../core/src/shared/thread-slot.ts";
import { entryOf, type ObjectRef } from "../../../core/src/store/object-ref.ts";
import type { Caller } from "../../../core/src/caller/caller.ts";
import { SimulatedDriver } from "./driver.ts";
import { type ClassOf, type SimulatedHost, SimulatedMachine } from "./machine.ts";
import { bigValue, digest, type Kind, Model, sizeFrom, type Told } from "./model.ts";
import { type HostListener, type Fault, Network } from "./network.ts";
import type { Random } from "./random.ts";
import { inProcess, World } from "./world.ts";

export const weathers = [
  "calm",
  "flapping",
  "faults",
  "flapping and faults",
  "busy",
  "kills",
  "kills and faults",
  "outage",
  "crash",
] as const;

export type WeatherName = (typeof weathers)[number];

/** What takes long is rarer. */
const weatherBySeed: readonly WeatherName[] = [
  ...weathers,
  ...weathers.filter((name) => !name.includes("flapping")),
  "faults",
  "kills and faults",
];

export interface Result {
  readonly seed: number;
  readonly weather: WeatherName;
  readonly problems: readonly string[];
  readonly events: number;
  readonly simulatedMs: number;
  readonly calls: number;
}

/** What a handle has for each method. */
interface Stub {
  remote(...args: unknown[]): unknown;
  options(options: object): { remote(...args: unknown[]): unknown };
}

type Handle = Readonly<Record<string, Stub>>;

interface Actor {
  readonly info: ActorInfo;
  readonly handle: Handle;
}

const faults: readonly Fault[] = ["cut", "half-open", "broken-pipe", "hold", "one-way", "corrupt"];

/** Nobody waits for longer, after the last fault, whatever it was. */
const longestMs = 10 * 60 * 1000;
/** And nothing is kept for longer for a peer that says nothing (core's transport/link/heartbeat.ts). */
const longestSilenceMs = 40 * 60 * 1000;

export async function runSeed(seed: number, trace?: (line: string) => void): Promise<Result> {
  const world = new World(seed, trace);
  const { random } = world;
  const weather = random.pick(weatherBySeed);
  const network = new Network(world, {
    latencyMs: random.pick([
      [0.05, 0.3],
      [0.5, 5],
      [5, 80],
    ] as const),
    windowBytes: random.pick([2 ** 10, 2 ** 16, 2 ** 22]),
  });
  const emitWarning = process.emitWarning.bind(process);
  // What a garbage collection costs is no part of the world, nor are stacks that nobody reads.
  noCollections();
  if (finalized) throw new Error("somebody is told what was collected");
  seedIds(random);
  if (trace === undefined) Error.stackTraceLimit = 0;
  process.emitWarning = (warning: string | Error) =>
    world.tell(() => `warning: ${String(warning)}`);
  world.install();
  network.install();
  try {
    const story = new Story(world, network, weather);
    await story.run();
    const { problems, calls } = story.model;
    return {
      seed,
      weather,
      problems,
      events: world.events,
      simulatedMs: world.nowMs,
      calls: calls.length,
    };
  } finally {
    network.uninstall();
    world.uninstall();
    process.emitWarning = emitWarning;
  }
}

class Story {
  readonly model: Model = new Model();
  readonly #world: World;
  readonly #network: Network;
  readonly #weather: WeatherName;
  readonly #reconnectTimeoutMs: number;
  readonly #machines: SimulatedMachine[];
  readonly #driver: SimulatedDriver;
  readonly #actors: Actor[] = [];
  /** Most stories are short: many of them find more than few long ones. */
  readonly #isShort: boolean;
  #lastFaultMs = 0;
  /** The driver lost a host after faults, or faults and outages together, had kept two processes apart for as long as a cut may last. */
  #wasGivenUpRightly = false;
  /** Waits of the driver that are not over. */
  #open = 0;

  constructor(world: World, network: Network, weather: WeatherName) {
    const { random } = world;
    this.#world = world;
    this.#network = network;
    this.#weather = weather;
    this.#isShort = random.chance(0.85);
    // Where much goes wrong at once, a connection that is heard of in time is chance.
    const isWild = weather === "flapping and faults";
    this.#reconnectTimeoutMs = isWild ? 10_000 : this.#isShort ? 3000 : random.pick([3000, 6000]);
    const numCpus = 4;
    this.#machines = Array.from(
      { length: this.#isShort ? 1 : 2 },
      (_, index) =>
        new SimulatedMachine(`machine ${index}`, world, network, {
          classOf: this.#classOf,
          reconnectTimeoutMs: this.#reconnectTimeoutMs,
          numCpus,
        }),
    );
    const addresses = this.#machines.map(({ address }) => address);
    this.#driver = new SimulatedDriver(addresses, this.#reconnectTimeoutMs, () => {
      this.#wasGivenUpRightly ||= network.keptApart(this.#leastMs, this.#reconnectTimeoutMs);
    });
  }

  async run(): Promise<void> {
    const world = this.#world;
    for (const machine of this.#machines) void machine.start();
    await world.runUntil(10);
    let isJoined = false;
    let failure: unknown;
    void inProcess(this.#driver.process, () =>
      this.#driver.join().then(
        () => (isJoined = true),
        (error: unknown) => (failure = error),
      ),
    );
    await world.runUntil(60_000, () => isJoined || failure !== undefined);
    if (!isJoined) {
      this.model.problem(`the machines were not joined: ${String(failure)}`);
      return;
    }
    inProcess(this.#driver.process, () => this.#begin());
    const beginMs = world.nowMs;
    const lengthMs = world.random.pick(this.#isShort ? [50, 50, 1000] : [50, 1000, 8000]);
    this.#callUntil(beginMs + lengthMs);
    this.#spoil(lengthMs);
    await world.runUntil(Math.max(beginMs + lengthMs, this.#lastFaultMs) + 1);
    const horizonMs = world.nowMs + longestMs;
    const isAlive = (host: string): boolean => this.#host(host)?.process.isAlive === true;
    // Also what actors have called, as long as they live.
    await world.runUntil(horizonMs, () => this.#open === 0 && !this.model.isAwaited(isAlive));
    this.model.check(this.#isWhole, isAlive);
    if (this.#isWhole) this.#checkNobodyLost();
    // What a consumer has left ends a few ways later.
    const quietMs = Math.max(world.nowMs, this.#lastFaultMs) + this.#reconnectTimeoutMs + 1000;
    await world.runUntil(quietMs);
    this.model.checkStreams(isAlive);
    await this.#close();
  }

  /**
   * Nothing is lost if one connection gets through within the time that a cut may last, and stays for a second after both sides have proved who they are. The proof takes
   * five ways: the connection is made, then hello, challenge, proof and welcome.
   */
  get #leastMs(): number {
    const [, latencyMs] = this.#network.weather.latencyMs;
    return 1000 + 5 * latencyMs;
  }

  /**
   * Whether nothing may be lost. Random faults can hit every connection between two processes within its first second, for as long as a cut may last (seeds 573823 and
   * 611519: 40 faults within two seconds). So can outages and faults together: a network that flaps leaves enough time between two outages, and faults can spoil just that
   * time (seed 872373: away for 5.6 s, there for 2 s with four faults, away for 5.6 s again, where a cut may last 10 s). Then the runtime promises nothing, and giving up
   * is right: the rest is checked as after a kill. Outages without such faults excuse nothing.
   */
  get #isWhole(): boolean {
    if (this.#wasGivenUpRightly) return false;
    return !["kills", "kills and faults", "outage", "crash"].includes(this.#weather);
  }

  #host(id: string): SimulatedHost | undefined {
    for (const { hosts } of this.#machines) {
      for (const host of hosts) if (host.id === id) return host;
    }
    return undefined;
  }

  #begin(): void {
    const { random } = this.#world;
    const count = this.#isShort ? random.integer(1, 2) : random.integer(2, 4);
    for (let index = 0; index < count; index++) {
      const { info, handle } = this.#driver.create({
        className: `Actor${index}`,
        methods: ["plain", "slow", "flaky", "stream", "big", "relay"],
        methodOptions: { stream: { numReturns: "streaming" } },
        maxConcurrency: random.pick([1, 1, 3]),
        maxRestarts: random.pick([0, 1, -1]),
        maxTaskRetries: random.pick([0, 2, -1]),
      });
      this.#actors.push({ info, handle: handle as Handle });
    }
  }

  /** Calls at random moments, often many at once. */
  #callUntil(endMs: number): void {
    const world = this.#world;
    const { random } = world;
    const count = this.#isShort ? random.integer(1, 6) : random.integer(5, 25);
    for (let index = 0; index < count; index++) {
      const atMs = random.chance(0.4) ? 0 : random.between(0, endMs - world.nowMs);
      world.after(atMs, () => this.#call(), this.#driver.process);
    }
  }

  #call(): void {
    const { random } = this.#world;
    const kind = random.pick<Kind>([
      "plain",
      "plain",
      "slow",
      "flaky",
      "stream",
      "big",
      "relay",
      "behind",
    ]);
    const actor = random.pick(this.#actors);
    const { caller } = this.#driver;
    switch (kind) {
      case "plain":
      case "slow": {
        const ms = random.pick([1, 20, 500]);
        const told = this.#tell(kind, "driver", actor);
        told.expected = 2 * told.id;
        this.#await(told, actor.handle[kind]?.remote(told.id, ms));
        break;
      }
      case "flaky": {
        const told = this.#tell(kind, "driver", actor, random.integer(0, 2));
        told.expected = told.throws;
        this.#await(told, this.#flaky(actor, told));
        break;
      }
      case "behind": {
        // A call that waits for what is tried again (in the same queue, often).
        const first = this.#tell("flaky", "driver", actor, random.integer(0, 2));
        first.expected = first.throws;
        const ref = this.#flaky(actor, first);
        this.#await(first, ref);
        const second = random.chance(0.7) ? actor : random.pick(this.#actors);
        const told = this.#tell(kind, "driver", second);
        told.expected = 2 * told.id;
        this.#await(told, second.handle["plain"]?.remote(told.id, ref));
        break;
      }
      case "big": {
        const size = sizeFrom(random);
        const told = this.#tell(kind, "driver", actor);
        told.expected = digest(bigValue(told.id, size));
        const isArgument = random.chance(0.5);
        const argument = isArgument ? bigValue(told.id, size) : size;
        this.#await(told, actor.handle["big"]?.remote(told.id, argument), (value) =>
          isArgument ? value : digest(value as Uint8Array),
        );
        break;
      }
      case "relay": {
        // One way only: two that call each other may wait for each other.
        const later = this.#actors.slice(this.#actors.indexOf(actor) + 1);
        if (later.length === 0) return;
        const other = random.pick(later);
        const told = this.#tell(kind, "driver", actor);
        // What it calls is told when it does.
        told.expected = "relayed";
        this.#await(
          told,
          actor.handle["relay"]?.remote(told.id, this.#actors.indexOf(other), other.handle),
        );
        break;
      }
      case "stream": {
        const told = this.#tell(kind, "driver", actor);
        const count = random.pick([0, 1, 5, 40]);
        const take = random.chance(0.5) ? count : random.integer(0, Math.min(count, 6));
        const isLimited = random.chance(0.5);
        const most = Math.min(take, 6);
        told.expected = Array.from({ length: most }, (_, index) => 1000 * told.id + index);
        const stub = actor.handle["stream"];
        const options = isLimited ? { generatorBackpressureNumObjects: 2 } : {};
        const pauseMs = random.pick([0, 1, 30]);
        const made = stub?.options(options).remote(told.id, count, pauseMs);
        void this.#consume(caller, told, made as ObjectRefGenerator, { count, most });
        break;
      }
    }
  }

  #flaky(actor: Actor, told: Told): unknown {
    const options = { maxTaskRetries: told.retries, retryExceptions: ["FlakyError"] };
    return actor.handle["flaky"]?.options(options).remote(told.id, told.throws);
  }

  #tell(kind: Kind, by: string, { info }: Actor, throws = 0): Told {
    const retries = throws > 0 ? Math.max(2, info.maxTaskRetries) : info.maxTaskRetries;
    return this.model.tell({
      kind,
      caller: by,
      actor: info.className,
      isOrdered: info.isOrdered,
      retries,
      throws,
      expected: undefined,
    });
  }

  #await(told: Told, ref: unknown, seen: (value: unknown) => unknown = (value) => value): void {
    this.#open += 1;
    getValues(this.#driver.caller, [entryOf(ref as ObjectRef)], new Wait("get")).then(
      ([value]) => this.#answered(told, { ok: true, value: seen(value) }),
      (error: Error) => this.#answered(told, { ok: false, error }),
    );
  }

  #answered(told: Told, outcome: NonNullable<Told["outcome"]>): void {
    this.#open -= 1;
    this.#world.tell(
      () => `call ${told.id} (${told.kind}) ${outcome.ok ? "is answered" : outcome.error.message}`,
    );
    this.model.answered(told, outcome);
  }

  /** Takes some of it, and leaves. */
  async #consume(
    caller: Caller,
    told: Told,
    stream: ObjectRefGenerator,
    { count, most }: { readonly count: number; readonly most: number },
  ): Promise<void> {
    this.#open += 1;
    const values: unknown[] = [];
    try {
      if (most === 0 && count > 0) {
        told.isLeft = true;
        await stream.return();
      } else {
        for await (const ref of stream) {
          const [value] = await getValues(caller, [entryOf(ref)], new Wait("get"));
          values.push(value);
          if (values.length === most && most < count) break;
        }
      }
      this.#answered(told, { ok: true, value: values });
    } catch (error) {
      this.#answered(told, { ok: false, error: error as Error });
    }
  }

  /** The class of the actors: what they do is told to the model. */
  readonly #classOf: ClassOf = (host) => {
    const { model } = this;
    const world = this.#world;
    const relay = (index: number, handle: Handle): Promise<string> =>
      this.#relay(host, index, handle);
    const life = host.id;
    return class Actor {
      plain(id: number): number {
        world.tell(() => `${life} runs plain ${id}`);
        model.began(id, life);
        return 2 * id;
      }

      async slow(id: number, ms: number): Promise<number> {
        model.began(id, life);
        await new Promise((resolve) => setTimeout(resolve, ms));
        return 2 * id;
      }

      flaky(id: number, throws: number): number {
        const { runs } = model.began(id, life);
        world.tell(() => `${life} runs flaky ${id}, for the ${runs.length}. time`);
        if (runs.length <= throws) throw new FlakyError(`attempt ${runs.length}`);
        return throws;
      }

      async *stream(id: number, count: number, pauseMs: number): AsyncGenerator<number> {
        model.began(id, life);
        const stream = { call: id, host: life, ends: 0 };
        model.streams.set(`${life} ${id} ${world.nowMs}`, stream);
        try {
          for (let index = 0; index < count; index++) {
            if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
            yield 1000 * id + index;
          }
        } finally {
          stream.ends += 1;
        }
      }

      big(id: number, size: number | Uint8Array): unknown {
        model.began(id, life);
        return typeof size === "number" ? bigValue(id, size) : digest(size);
      }

      async relay(id: number, index: number, other: Handle): Promise<string> {
        model.began(id, life);
        return relay(index, other);
      }
    };
  };

  /** One actor calls another, directly. */
  async #relay(host: SimulatedHost, index: number, handle: Handle): Promise<string> {
    const { caller } = host.composed ?? {};
    if (caller === undefined) throw new Error("a host that runs code has a runtime");
    const { info } = this.#actors[index] as Actor;
    const told = this.model.tell({
      kind: "plain",
      caller: host.id,
      actor: info.className,
      isOrdered: info.isOrdered,
      retries: info.maxTaskRetries,
      throws: 0,
      expected: undefined,
    });
    told.expected = 2 * told.id;
    try {
      const [value] = await getValues(
        caller,
        [entryOf(handle["plain"]?.remote(told.id) as ObjectRef)],
        new Wait("get"),
      );
      this.model.answered(told, { ok: true, value });
    } catch (error) {
      this.model.answered(told, { ok: false, error: error as Error });
      throw error;
    }
    return "relayed";
  }

  /** What goes wrong, and when. */
  #spoil(lengthMs: number): void {
    const { random } = this.#world;
    const patienceMs = this.#reconnectTimeoutMs;
    switch (this.#weather) {
      case "calm":
        break;
      case "flapping":
        this.#flap(random.between(0, 500), patienceMs);
        break;
      case "faults":
        this.#faults(random.integer(1, 40), patienceMs);
        break;
      case "flapping and faults":
        this.#flap(random.between(0, 500), patienceMs);
        this.#faults(random.integer(1, 20), patienceMs);
        break;
      case "busy":
        this.#busy(lengthMs);
        this.#faults(random.integer(0, 5), patienceMs);
        break;
      case "kills":
        this.#kills(lengthMs);
        break;
      case "kills and faults":
        this.#kills(lengthMs);
        this.#faults(random.integer(1, 20), patienceMs);
        break;
      case "outage":
        this.#down(random.between(0, lengthMs), patienceMs * random.between(0.8, 2));
        break;
      case "crash":
        this.#crash(random.between(0, lengthMs));
        break;
    }
  }

  #at(ms: number, run: () => void): void {
    this.#lastFaultMs = Math.max(this.#lastFaultMs, this.#world.nowMs + ms);
    this.#world.after(ms, run, undefined);
  }

  /** Nobody reaches anybody for so long. */
  #down(atMs: number, forMs: number): void {
    const { random } = this.#world;
    const network = this.#network;
    const door = random.pick<HostListener>(["refused", "reset", "silent", "mute"]);
    const fault = random.pick<Fault>(["cut", "cut", "hold", "half-open"]);
    this.#at(atMs, () => {
      this.#world.tell(
        () => `the network is away for ${forMs.toFixed(0)} ms (${fault}, then ${door})`,
      );
      network.away(fault, door, forMs);
    });
    this.#at(atMs + forMs, () => {
      this.#world.tell(() => "the network is back");
      network.door = () => "open";
    });
  }

  /** Up for a second at least, and down for less than there is patience, until that would be used up. */
  #flap(firstMs: number, patienceMs: number): void {
    const { random } = this.#world;
    const downMs = random.between(0.25, 0.6) * patienceMs;
    // A second, once both sides have proved who they are, which takes a few ways; somebody who may be busy is dialled so often (core's transport/connect/first-connection.ts).
    const [, latencyMs] = this.#network.weather.latencyMs;
    const leastMs = Math.max(1000, patienceMs / 12) + 12 * latencyMs;
    const upMs = random.between(leastMs, leastMs + 3000);
    const times = Math.ceil((1.3 * patienceMs) / downMs);
    for (let index = 0; index < times; index++) {
      this.#down(firstMs + index * (downMs + upMs), downMs);
    }
  }

  /** One connection at a time suffers. */
  #faults(count: number, patienceMs: number): void {
    const { random } = this.#world;
    const everyMs = random.pick([50, 500, 2000]);
    let atMs = 0;
    for (let index = 0; index < count; index++) {
      atMs += random.between(0, 2 * everyMs);
      const fault = random.pick(faults);
      const ms = random.between(0, Math.min(3000, 0.6 * patienceMs));
      this.#at(atMs, () => {
        const connections = [...this.#network.connections];
        if (connections.length === 0) return;
        const connection = random.pick(connections);
        this.#world.tell(
          () =>
            `${fault} for ${ms.toFixed(0)} ms: ${connection.near.process?.name} -> ${connection.far?.process?.name}`,
        );
        connection.strike(fault, ms);
      });
    }
  }

  /** A host computes, for longer than there is patience. */
  #busy(lengthMs: number): void {
    const { random } = this.#world;
    for (let index = random.integer(1, 3); index > 0; index--) {
      this.#at(random.between(0, lengthMs), () => {
        const host = this.#anyHost();
        if (host === undefined) return;
        host.process.busyUntilMs =
          this.#world.nowMs + this.#reconnectTimeoutMs * random.between(0.1, 4);
        this.#lastFaultMs = Math.max(this.#lastFaultMs, host.process.busyUntilMs);
        this.#world.tell(() => `${host.id} computes`);
      });
    }
  }

  #kills(lengthMs: number): void {
    const { random } = this.#world;
    for (let index = random.integer(1, 4); index > 0; index--) {
      this.#at(random.between(0, lengthMs), () => this.#anyHost()?.end("was killed from outside"));
    }
  }

  #crash(atMs: number): void {
    const { random } = this.#world;
    const machine = random.pick(this.#machines);
    this.#at(atMs, () => machine.crash());
    this.#at(atMs + random.between(1000, 30_000), () => void machine.start());
  }

  #anyHost(): SimulatedHost | undefined {
    const hosts = this.#machines.flatMap((machine) => [...machine.hosts]);
    return hosts.length === 0 ? undefined : this.#world.random.pick(hosts);
  }

  #checkNobodyLost(): void {
    for (const { info } of this.#actors) {
      const record = this.#driver.actor(info.actorId)?.record;
      const isThere = record?.state === "alive" || record?.state === "pending";
      if (isThere && record.life.number === 0) continue;
      this.model.problem(
        `${info.className} was given up: ${record?.state} after ${record?.life.number} restarts (${record?.cause?.kind}: ${record?.cause?.message})`,
      );
    }
  }

  /** Nothing is left when the session has ended. */
  async #close(): Promise<void> {
    const world = this.#world;
    let isClosed = false;
    void inProcess(this.#driver.process, () => this.#driver.close()).then(() => (isClosed = true));
    await world.runUntil(world.nowMs + longestMs, () => isClosed);
    if (!isClosed) this.model.problem("the session did not end");
    // What only waits for its own limit.
    await world.runUntil(world.nowMs + longestSilenceMs);
    const hosts = this.#machines.flatMap((machine) => [...machine.hosts]);
    if (hosts.length > 0) this.model.problem(`${hosts.length} hosts are left`);
    const { connections } = this.#network;
    if (connections.size > 0) {
      const [one] = connections;
      this.model.problem(
        `${connections.size} connections are left, number ${one?.number} from ${one?.near.process?.name} to ${one?.far?.process?.name ?? "nobody"}`,
      );
    }
    if (world.pending > 0) this.model.problem(`${world.pending} timers are left`);
  }
}

/** The runtime asks for none (core's protocol/shared-memory.ts). */
function noCollections(): void {
  const seen: { collect?: () => void } = threadSlot("shared-memory", () => ({}));
  seen.collect = () => undefined;
}

/** Who is chosen among equals may depend on their ids (core's shared/ids.ts). */
function seedIds(random: Random): void {
  const source: { next?: () => string } = threadSlot("ids", () => ({}));
  source.next = () =>
    Math.floor(random.next() * 36 ** 8)
      .toString(36)
      .padStart(16, "0");
}

class FlakyError extends Error {
  override readonly name = "FlakyError";
}
