/** Machines that show each other certificates, and what is said when they do not fit. */
import { X509Certificate } from "node:crypto";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectSecure } from "node:tls";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { generate } from "selfsigned";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import {
  type Agent,
  type AgentOptions,
  CertificateError,
  enableNodes,
  makeCertificate,
  NodeAddressError,
  startAgent,
} from "../src/index.ts";
import { inFull, sized } from "../../../test/fixtures/suite.ts";
import { RawPeer } from "../../../test/fixtures/wire.ts";
import { Far } from "./fixtures/actors.ts";

enableNodes();

let root: string;
/** Of the machines here: for 127.0.0.1. */
let tls: string;
const agents: Agent[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rayling-tls-"));
  tls = join(root, "own");
  await makeCertificate({ authority: tls, hosts: ["127.0.0.1", "here.example"] });
});
afterEach(async () => {
  await ray.shutdown();
  await Promise.all(agents.splice(0).map((agent) => agent.close()));
});
afterAll(() => rm(root, { recursive: true, force: true }));

async function agentWith(options: AgentOptions): Promise<Agent> {
  const agent = await startAgent(options);
  agents.push(agent);
  return agent;
}

const on = async (name: string): Promise<ray.ActorOptions> => {
  const nodes = await ray.nodes();
  const nodeId = nodes.find(({ nodeName }) => nodeName === name)?.nodeId ?? "";
  return { schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: false } };
};

describe("machines with certificates of one authority", () => {
  test("run actors that reach each other, the driver's threads and big values, over TLS", async () => {
    const one = await agentWith({ tls, nodeName: "one" });
    const two = await agentWith({ tls, nodeName: "two" });
    expect(one.address).toMatch(/^raylings:\/\/[\w-]+@127\.0\.0\.1:\d+$/);
    await ray.init({ numCpus: 1, nodes: [one.address, two.address], tls });
    const left = Far.options(await on("one")).remote();
    const right = Far.options(await on("two")).remote();
    const here = Far.remote();
    expect(await ray.get(left.addTo.remote(right, 1))).toBe(1);
    expect(await ray.get(right.addTo.remote(here, 2))).toBe(2);
    expect(await ray.get(here.addManyTo.remote(left, 2000))).toHaveLength(2000);
    const big = left.fill.remote(500_000, 2);
    expect(await ray.get(right.sum.remote(big))).toBe(1_000_000);
    expect(await ray.get(here.sum.remote(big))).toBe(1_000_000);
    const put = ray.put(new Float64Array(300_000).fill(1));
    expect(await ray.get([left.sum.remote(put), right.sum.remote(put)])).toEqual([
      300_000, 300_000,
    ]);
  });

  const ways: readonly [string, string][] = [
    [", also while it writes something else", "exit-busy"],
    ["", "exit"],
  ];
  test.each(sized({ gate: ways.slice(0, 1), full: ways }))(
    "hear the goodbye of a driver that ends without shutdown%s",
    async (_, how) => {
      const agent = await agentWith({ tls, reconnectTimeoutMs: 600_000 });
      const main = fileURLToPath(new URL("fixtures/driver-main.ts", import.meta.url));
      const driver = spawn(process.execPath, [main, agent.address, how], {
        stdio: "ignore",
        env: { ...process.env, RAYLING_TLS: tls },
      });
      const [code] = (await once(driver, "exit")) as [number];
      expect(code).toBe(0);
      await expect.poll(() => agent.hostCount).toBe(0);
    },
  );

  test("take three files in place of a folder", async () => {
    const files = {
      ca: join(tls, "ca.pem"),
      cert: join(tls, "cert.pem"),
      key: join(tls, "key.pem"),
    };
    const { address } = await agentWith({ tls: files, nodeName: "one" });
    await ray.init({ numCpus: 0, nodes: [address], tls: files });
    expect(await ray.get(Far.remote().add.remote(1))).toBe(1);
  });

  test("may listen where others reach them, by the first name in the certificate", async () => {
    const { address } = await agentWith({ tls, host: "0.0.0.0" });
    expect(address).toContain("@here.example:");
    const named = await agentWith({ tls, host: "0.0.0.0", publicHost: "127.0.0.1" });
    await ray.init({ numCpus: 0, nodes: [named.address], tls });
    expect(await ray.get(Far.remote().add.remote(1))).toBe(1);
    await expect(startAgent({ host: "0.0.0.0" })).rejects.toThrow(
      "the agent listens on 0.0.0.0 only with certificates",
    );
  });

  test("answer others while many connections say nothing", async () => {
    const { address } = await agentWith({ tls });
    const { port } = new URL(address);
    const silent = Array.from({ length: 50 }, () => connect(Number(port), "127.0.0.1"));
    await Promise.all(silent.map((socket) => once(socket, "connect")));
    await ray.init({ numCpus: 0, nodes: [address], tls });
    expect(await ray.get(Far.remote().add.remote(1))).toBe(1);
    for (const socket of silent) socket.destroy();
  });
});

describe("what a host is given to show", () => {
  test("is of any size, and neither its programs nor others see it or a token", async () => {
    const big = join(root, "big");
    await makeCertificate({ authority: tls, out: big, hosts: ["127.0.0.1"] });
    // As of a machine that believes many authorities.
    const ca = await readFile(join(tls, "ca.pem"), "utf8");
    await writeFile(join(big, "ca.pem"), `${ca.trim()}\n`.repeat(Math.ceil(300_000 / ca.length)));
    const key = await readFile(join(big, "key.pem"), "utf8");
    const { address } = await agentWith({ tls: big, nodeName: "big" });
    await ray.init({ numCpus: 1, nodes: [address], tls: big, isolation: "process" });
    const there = Far.options(await on("big")).remote();
    const nodeId = ray.getRuntimeContext().getNodeId();
    const here = Far.options({
      schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: false },
    }).remote();
    expect(await ray.get(here.addTo.remote(there, 1))).toBe(1);
    for (const actor of [here, there]) {
      for (const text of await ray.get(actor.seen.remote())) {
        expect(text).not.toContain(key.split("\n")[1]);
        expect(text).not.toContain("PRIVATE KEY");
        expect(text).not.toMatch(/"token"|"hostId"/);
      }
    }
  });
});

describe("certificates that are replaced while agents, drivers and hosts run", () => {
  /** What is shown there to who does not look whom he speaks to. */
  const serialAt = async (port: number): Promise<string> => {
    const socket = connectSecure({ host: "127.0.0.1", port, rejectUnauthorized: false });
    socket.on("error", () => undefined);
    await once(socket, "secureConnect");
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  };
  const serialIn = async (folder: string): Promise<string> =>
    new X509Certificate(await readFile(join(folder, "cert.pem"))).serialNumber;
  /** Where hosts listen. */
  /** Returns "" for one that was closed meanwhile. */
  const heldBy = (pid: number, fd: string): string => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return "";
    }
  };
  const portsOf = (pid: number): number[] => {
    const held = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => heldBy(pid, fd)));
    return readFileSync(`/proc/${pid}/net/tcp`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === "0A" && held.has(`socket:[${fields[9]}]`))
      .map((fields) => Number.parseInt(fields[1]?.split(":")[1] ?? "", 16));
  };

  test.runIf(process.platform === "linux")(
    "are shown and believed by all of them, also of a new authority",
    async () => {
      const folder = join(root, "replaced");
      await makeCertificate({ authority: folder, hosts: ["127.0.0.1"] });
      const events: string[] = [];
      const onEvent = (line: string): void => void events.push(line);
      const one = await agentWith({ tls: folder, nodeName: "one", onEvent });
      const two = await agentWith({ tls: folder, nodeName: "two" });
      const nodes = [one.address, two.address];
      await ray.init({ numCpus: 2, prewarm: 1, nodes, tls: folder });
      const left = Far.options(await on("one")).remote();
      const right = Far.options(await on("two")).remote();
      const nodeId = ray.getRuntimeContext().getNodeId();
      const own = { schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: false } } as const;
      const thread = Far.options(own).remote();
      const child = Far.options({ ...own, isolation: "process" }).remote();
      const actors = [left, right, thread, child];
      await ray.get(actors.map((actor) => actor.add.remote(0)));
      const hosts = await ray.get([left.where.remote(), right.where.remote()]);
      const ports = [
        ...nodes.map((address) => Number(new URL(address).port)),
        ...hosts.flatMap(({ pid }) => portsOf(pid)),
      ];
      expect(ports).toHaveLength(4);
      const shown = (): Promise<string[]> => Promise.all(ports.map((port) => serialAt(port)));
      expect(await shown()).toEqual(Array(4).fill(await serialIn(folder)));

      await Promise.all(["ca.pem", "ca-key.pem"].map((name) => rm(join(folder, name))));
      await makeCertificate({ authority: folder, hosts: ["127.0.0.1"] });
      await expect.poll(shown).toEqual(Array(4).fill(await serialIn(folder)));
      expect(events.filter((line) => line.includes("cert.pem"))).toEqual([
        expect.stringContaining("and its key are in use from now on; it is valid until "),
      ]);

      // Nobody who still showed or believed the old ones would get through.
      const reaches = async (from: (typeof actors)[0], to: (typeof actors)[0]): Promise<string> =>
        ray.get(from.addTo.remote(to, 0)).then(
          () => "yes",
          (error: Error) => error.message,
        );
      expect(await reaches(left, right)).toBe("yes");
      await expect.poll(() => reaches(thread, left)).toBe("yes");
      await expect.poll(() => reaches(child, left)).toBe("yes");
      const another = Far.options(await on("one")).remote();
      expect(await ray.get(another.add.remote(1))).toBe(1);
    },
  );

  test("that cannot be used are told of once, and the old ones serve on", async () => {
    const folder = join(root, "spoilt");
    await makeCertificate({ authority: folder, hosts: ["127.0.0.1"] });
    const events: string[] = [];
    const { address } = await agentWith({ tls: folder, onEvent: (line) => events.push(line) });
    const old = await serialIn(folder);
    const cert = join(folder, "cert.pem");
    // All is in order with it, and OpenSSL takes no key so short.
    const short = await generate([{ name: "commonName", value: "short" }], {
      keyType: "rsa",
      keySize: 1024,
      algorithm: "sha256",
    });
    await writeFile(join(folder, "key.pem"), short.private);
    await writeFile(cert, short.cert);
    await expect.poll(() => events).toContainEqual(expect.stringContaining(cert));
    expect(events).toEqual([
      expect.stringContaining("the previous certificates stay in use until it is repaired"),
    ]);
    const { port } = new URL(address);
    expect(await serialAt(Number(port))).toBe(old);
    await makeCertificate({ authority: folder, hosts: ["127.0.0.1"] });
    await expect.poll(() => serialAt(Number(port))).toBe(await serialIn(folder));
    expect(events).toHaveLength(2);
  });

  test("are asked for in the week before they end", async () => {
    const folder = join(root, "soon");
    await makeCertificate({ authority: folder, hosts: ["127.0.0.1"], days: 6 });
    const events: string[] = [];
    await agentWith({ tls: folder, onEvent: (line) => events.push(line) });
    expect(events).toEqual([
      expect.stringMatching(
        /cert\.pem expires on .*: rayling cert makes a new one; the renewal needs no restart/,
      ),
    ]);
    await makeCertificate({ authority: folder, hosts: ["127.0.0.1"], days: 8 });
    await agentWith({ tls: folder, onEvent: (line) => events.push(line) });
    expect(events).toHaveLength(1);
  });
});

describe("an actor that cannot reach another", () => {
  test("hears why, and the other stays reachable for those who can", async () => {
    // As long as an actor looks for a way to another.
    const reconnectTimeoutMs = 2000;
    const bare = await agentWith({ nodeName: "bare", reconnectTimeoutMs });
    const secure = await agentWith({ tls, nodeName: "secure", reconnectTimeoutMs });
    const nodes = [bare.address, secure.address];
    await ray.init({ numCpus: 0, nodes, tls, reconnectTimeoutMs });
    const outside = Far.options(await on("bare")).remote();
    const inside = Far.options(await on("secure")).remote();
    expect(await ray.get(inside.add.remote(1))).toBe(1);
    const error = await ray.get(outside.addTo.remote(inside, 1)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ray.ActorUnavailableError);
    expect((error as Error).message).toMatch(/cannot be reached from here .*the call was not sent/);
    expect((error as Error).message).toContain("has no certificate to show");
    // The other way round it is the one with certificates that dials.
    expect(await ray.get(inside.addTo.remote(outside, 5))).toBe(5);
    expect(await ray.get(inside.add.remote(1))).toBe(2);
  });
});

describe("what does not fit is told with what to do", () => {
  let other: string;
  let elsewhere: string;
  let expired: string;
  let early: string;
  let address: string;
  let plain: string;
  let keep: Agent[];
  beforeAll(async () => {
    other = join(root, "other");
    await makeCertificate({ authority: other, hosts: ["127.0.0.1"] });
    elsewhere = join(root, "elsewhere");
    await makeCertificate({ authority: tls, out: elsewhere, hosts: ["elsewhere.example"] });
    expired = await validOnly("expired", "2020-01-01", "2021-01-01");
    // As of a machine whose clock is far behind.
    early = await validOnly("early", "2100-01-01", "2101-01-01");
    keep = await Promise.all([startAgent({ tls }), startAgent({ tls: elsewhere }), startAgent()]);
    address = keep[0]?.address ?? "";
    plain = keep[2]?.address ?? "";
  });
  afterAll(() => Promise.all(keep.map((agent) => agent.close())));
  /** Certificates of the same authority. */
  const validOnly = async (name: string, from: string, to: string): Promise<string> => {
    const folder = join(root, name);
    await mkdir(folder);
    await copyFile(join(tls, "ca.pem"), join(folder, "ca.pem"));
    const [ca, key] = await Promise.all(
      ["ca.pem", "ca-key.pem"].map((file) => readFile(join(tls, file), "utf8")),
    );
    const made = await generate([{ name: "commonName", value: name }], {
      keyType: "ec",
      algorithm: "sha256",
      notBeforeDate: new Date(from),
      notAfterDate: new Date(to),
      ca: { cert: ca as string, key: key as string },
    });
    await writeFile(join(folder, "cert.pem"), made.cert);
    await writeFile(join(folder, "key.pem"), made.private);
    return folder;
  };
  const init = (options: ray.InitOptions): Promise<unknown> =>
    ray.init({ numCpus: 0, ...options }).catch((thrown: unknown) => thrown);

  test.each<[string, () => ray.InitOptions, string]>([
    ["no certificate", () => ({ nodes: [address] }), "has no certificate to show"],
    ["another authority", () => ({ nodes: [address], tls: other }), "from another authority"],
    [
      "a certificate for other names",
      () => ({ nodes: [keep[1]?.address ?? ""], tls }),
      "not for 127.0.0.1: name it as the certificate does, or make one with rayling cert --host 127.0.0.1",
    ],
    [
      "TLS to an agent without",
      () => ({ nodes: [plain.replace("rayling:", "raylings:")], tls }),
      "its address is rayling://, not raylings://",
    ],
    [
      "no TLS to an agent with",
      () => ({ nodes: [address.replace("raylings:", "rayling:")] }),
      "raylings://",
    ],
  ])("%s", async (_name, options, message) => {
    const error = await init(options());
    expect(error).toBeInstanceOf(NodeAddressError);
    expect((error as Error).message).toContain(message);
    // The token stays where it is.
    expect((error as Error).message).not.toContain(new URL(address).username);
    expect(ray.isInitialized()).toBe(false);
  });

  test("another authority, in a process whose HTTP clients are told not to look", async () => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    try {
      const error = await init({ nodes: [address], tls: other });
      expect((error as Error).message).toContain("from another authority");
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test("no certificate, and one of another authority, to an agent whose process is told not to look", async () => {
    const agent = fileURLToPath(new URL("fixtures/agent-main.ts", import.meta.url));
    const child = spawn(process.execPath, [agent, "blind", "1", JSON.stringify({ tls })], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    });
    try {
      const [line] = (await once(child.stdout, "data")) as [Buffer];
      const { hostname: host, port, username: token } = new URL(line.toString().trim());
      const meet = async (from: string | undefined): Promise<boolean> => {
        const [cert, key] = await Promise.all(
          ["cert.pem", "key.pem"].map(
            async (name) => from && (await readFile(join(from, name), "utf8")),
          ),
        );
        // It has the token, and does not mind whom it speaks to.
        const shown = { ...(cert && key ? { cert, key } : {}), rejectUnauthorized: false };
        const peer = new RawPeer({ host, port: Number(port) }, shown);
        const isWelcome = await peer.introduce(token, { peerId: "x", wayId: "operator" });
        peer.end();
        return isWelcome;
      };
      expect([await meet(undefined), await meet(other)]).toEqual([false, false]);
      expect(await meet(tls)).toBe(true);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("files that cannot be used", async () => {
    const missing = join(root, "missing");
    const mixed = {
      ca: join(tls, "ca.pem"),
      cert: join(tls, "cert.pem"),
      key: join(other, "key.pem"),
    };
    const garbage = { ...mixed, cert: join(root, "garbage.pem") };
    await writeFile(garbage.cert, "no certificate");
    const [first, second] = await Promise.all(
      [tls, other].map(async (folder) => (await readFile(join(folder, "ca.pem"), "utf8")).trim()),
    );
    const bundle = async (name: string, text: string): Promise<typeof mixed> => {
      await writeFile(join(root, name), text);
      return { ca: join(root, name), cert: join(tls, "cert.pem"), key: join(tls, "key.pem") };
    };
    const glued = await bundle("glued.pem", `${first}${second}`);
    const cut = await bundle("cut.pem", `${first}\n${second?.slice(0, 200)}`);
    const spoilt = await bundle("spoilt.pem", `${first}\n${second?.replace(/MII/, "XXX")}`);
    const weak = join(root, "weak");
    await mkdir(weak);
    const made = await generate([{ name: "commonName", value: "weak" }], {
      keyType: "rsa",
      keySize: 1024,
      algorithm: "sha256",
    });
    await writeFile(join(weak, "cert.pem"), made.cert);
    await writeFile(join(weak, "key.pem"), made.private);
    await copyFile(join(tls, "ca.pem"), join(weak, "ca.pem"));
    const cases: [ray.InitOptions["tls"], string][] = [
      [weak, `${join(weak, "cert.pem")} is refused by TLS: error:0A00018F:SSL routines::ee key`],
      [glued, `${glued.ca} has a certificate that begins on the line on which another ends: put a`],
      [cut, `${cut.ca} is truncated: 2 certificates begin, and 1 end`],
      [spoilt, `${spoilt.ca} is invalid in its certificate 2 of 2`],
      [missing, `${join(missing, "ca.pem")} cannot be read`],
      [expired, `${join(expired, "cert.pem")} expired on 2021-01-01`],
      [
        early,
        `${join(early, "cert.pem")} is valid from 2100-01-01T00:00:00.000Z on, and the clock`,
      ],
      [mixed, `${mixed.key} is not the key of ${mixed.cert}`],
      [garbage, `${garbage.cert} is invalid`],
    ];
    for (const [source, message] of cases) {
      if (source === undefined) throw new Error("each case names files");
      const error = await init({ tls: source });
      expect(error).toBeInstanceOf(CertificateError);
      expect(error).toMatchObject({ code: "CERTIFICATE" });
      expect((error as Error).message).toContain(message);
      await expect(startAgent({ tls: source })).rejects.toThrow(message);
    }
    await expect(ray.init({ tls: 3 as never })).rejects.toThrow("must be a folder");
  });

  test.each([
    ["that expired", () => expired, /expired.*rayling cert/],
    ["of tomorrow", () => early, /not valid yet, by the clock of this machine: set the clocks/],
  ])("a server that shows a certificate %s", async (_when, folder, message) => {
    const files = ["ca.pem", "cert.pem", "key.pem"].map((name) => readFile(join(folder(), name)));
    const [ca, cert, key] = await Promise.all(files);
    const { createServer: createSecure } = await import("node:tls");
    const server = createSecure({ ca, cert, key });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const error = await init({ nodes: [`raylings://token@127.0.0.1:${port}`], tls });
    server.close();
    expect((error as Error).message).toMatch(message);
  });

  test.runIf(
    inFull(
      "it waits for 5 s; packages/cluster/test/busy.test.ts dials who does not answer, over TLS",
    ),
  )("a server that never answers", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const error = await init({ nodes: [`raylings://token@127.0.0.1:${port}`], tls });
    server.close();
    expect(error).toBeInstanceOf(NodeAddressError);
  });
});

test("an agent on all addresses is called by a name of its certificate that others can reach", async () => {
  const source = join(root, "reachable");
  const hosts = ["localhost", "::1", "*.cluster.example", "node7.cluster.example"];
  await makeCertificate({ authority: source, hosts });
  const agent = await startAgent({ host: "0.0.0.0", tls: source });
  expect(new URL(agent.address).hostname).toBe("node7.cluster.example");
  await agent.close();
});

describe("makeCertificate", () => {
  test.each([
    ["10.0.0.7:6399", "; perhaps 10.0.0.7 is meant"],
    ["10.0.0.7,10.0.0.8", "; perhaps 10.0.0.7 and 10.0.0.8 is meant"],
    ["[::1]", "; perhaps ::1 is meant"],
    ["raylings://10.0.0.7", "; perhaps 10.0.0.7 is meant"],
    ["", ""],
    ["a b", "; perhaps a and b is meant"],
  ])(
    "refuses the host %j, which no certificate can match, and touches no file",
    async (host, hint) => {
      const authority = join(root, "refused");
      await expect(makeCertificate({ authority, hosts: ["127.0.0.1", host] })).rejects.toThrow(
        `the host ${JSON.stringify(host)} is neither a name nor an address, without a scheme and a port${hint}`,
      );
      expect(() => readdirSync(authority)).toThrow("ENOENT");
    },
  );

  test("makes one authority and many certificates, which only their user can read", async () => {
    const authority = join(root, "many");
    const first = await makeCertificate({ authority, hosts: ["a.example", "10.0.0.1", "::1"] });
    expect(first).toMatchObject({ folder: authority, madeAuthority: true });
    const out = join(authority, "b");
    const second = await makeCertificate({ authority, out, hosts: ["b.example"], days: 3 });
    expect(second).toMatchObject({ folder: out, madeAuthority: false });
    const [ca, a, b] = await Promise.all(
      [join(out, "ca.pem"), join(authority, "cert.pem"), join(out, "cert.pem")].map(
        async (path) => new X509Certificate(await readFile(path)),
      ),
    );
    if (ca === undefined || a === undefined || b === undefined) throw new Error("three were read");
    expect(a.checkIssued(ca) && b.checkIssued(ca)).toBe(true);
    expect(a.subjectAltName).toBe("DNS:a.example, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1");
    expect(b.validToDate.getTime() - Date.now()).toBeLessThan(3 * 86_400_000);
    for (const name of ["key.pem", "b/key.pem", "ca-key.pem"]) {
      expect((await stat(join(authority, name))).mode & 0o077).toBe(0);
    }
    expect((await stat(authority)).mode & 0o077).toBe(0);
    await expect(stat(join(out, "ca-key.pem"))).rejects.toThrow("ENOENT");
  });

  test("makes files that are a bundle, one after the other", async () => {
    const [one, two, out] = [join(root, "first"), join(root, "second"), join(root, "bundle")];
    for (const authority of [one, two]) {
      await makeCertificate({ authority, hosts: ["127.0.0.1"] });
    }
    const texts = await Promise.all(
      [one, two].map((folder) => readFile(join(folder, "ca.pem"), "utf8")),
    );
    await mkdir(out);
    await writeFile(join(out, "ca.pem"), texts.join(""));
    for (const name of ["cert.pem", "key.pem"]) await copyFile(join(one, name), join(out, name));
    const { address } = await agentWith({ tls: out });
    // A driver of the second authority, which believes both.
    for (const name of ["cert.pem", "key.pem"]) await copyFile(join(two, name), join(out, name));
    await ray.init({ numCpus: 0, nodes: [address], tls: out });
    expect(await ray.get(Far.remote().add.remote(1))).toBe(1);
    // Where the first is made certificates with, whichever comes first; both are believed as before.
    const bundle = texts.toReversed().join("");
    await writeFile(join(one, "ca.pem"), bundle);
    await makeCertificate({ authority: one, hosts: ["127.0.0.1"] });
    const [made, authority] = [await readFile(join(one, "cert.pem")), texts[0] ?? ""];
    expect(new X509Certificate(made).checkIssued(new X509Certificate(authority))).toBe(true);
    expect(await readFile(join(one, "ca.pem"), "utf8")).toBe(bundle);
    await copyFile(join(two, "ca.pem"), join(one, "ca.pem"));
    await expect(makeCertificate({ authority: one, hosts: ["127.0.0.1"] })).rejects.toThrow(
      "has no certificate whose key is the ca-key.pem beside it",
    );
  });

  test("says when the authority is elsewhere, and when nobody is named", async () => {
    const authority = join(root, "only-ca");
    await mkdir(authority);
    await copyFile(join(tls, "ca.pem"), join(authority, "ca.pem"));
    await expect(makeCertificate({ authority, hosts: ["a"] })).rejects.toThrow("no ca-key.pem");
    await expect(makeCertificate({ authority, hosts: [] })).rejects.toThrow("at least one host");
  });
});
