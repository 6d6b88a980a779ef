/**
 * Question: what does a call cost that goes to another machine, over TCP and over TLS, against bare
 * sockets of the same kind? How fast does a big value come from there? How long does it take to
 * find a place among 1,000 nodes?
 *
 * The machines are agents on this one, over the loopback: the cost is that of the software, and the
 * network's comes on top of it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agent, enableNodes, makeCertificate, startAgent } from "@rayling/cluster";
import * as ray from "@rayling/core";
import { measureSubjects } from "./calls.ts";
import { figureOf, type Measured, ratioTo, type Section, tableOf } from "./measure/figures.ts";
import { interleave, type RoundPlan } from "./measure/interleave.ts";
import type { Progress, Report } from "./measure/report.ts";
import { Maker, type MakerInstance } from "./subjects/actors.ts";
import {
  rawSocketSubject,
  rawTcpSubject,
  socketName,
  tcpName,
  tlsName,
} from "./subjects/raw/batched-socket.ts";
import { processName, raylingFarSubject, raylingProcessSubject } from "./subjects/rayling.ts";
import type { Subject } from "./subjects/subject.ts";

const farTcp = "rayling, TCP";
const farTls = "rayling, TLS";
const floors = [socketName, tcpName, tlsName];

const oneAtATime: Section = {
  id: "machines-serial",
  title: "One call at a time, to a process over a socket",
  reading: "time",
  perIteration: 1,
  unit: "us",
  floors,
};
const inFlight: Section = {
  id: "machines-in-flight",
  title: "1,000 calls in flight, to a process over a socket",
  reading: "rate",
  perIteration: 1000,
  unit: "ms",
  floors,
};
const pull = (bytes: number): Section => ({
  id: "machines-pull",
  title: `A value of ${bytes / 1e6} MB made and read, from one process to another`,
  reading: "time",
  perIteration: 1,
  unit: "ms",
  floors: ["made and read in one process"],
});
const placement: Section = {
  id: "machines-placement",
  title: "A placement group among 1,000 nodes, reserved and given back",
  reading: "time",
  perIteration: 1,
  unit: "us",
  floors: [],
};

/** Makes a session of its own. */
export async function measureMachines(
  plan: RoundPlan,
  elements: number,
  say: Progress,
): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-bench-"));
  await makeCertificate({ authority: folder, hosts: ["127.0.0.1"] });
  const agents: Agent[] = [];
  enableNodes();
  try {
    agents.push(await startAgent({ nodeName: "tcp", numCpus: 4 }));
    agents.push(await startAgent({ nodeName: "tls", numCpus: 4, tls: folder }));
    await ray.init({ nodes: agents.map(({ address }) => address), tls: folder });
    const nodes = await ray.nodes();
    const idOf = (name: string): string =>
      nodes.find(({ nodeName }) => nodeName === name)?.nodeId ?? "";
    const calls = await measureFarCalls(folder, idOf, plan, say);
    const pulls = await measurePull(elements, idOf, plan, say);
    const places = await measurePlacement(plan, say);
    const sections = [...calls, pulls, places];
    const [serial, many] = calls;
    if (serial === undefined || many === undefined) throw new TypeError("calls were not measured");
    const pulled = pulls.figures.find(({ name }) => name === farTcp)?.medianMs ?? 0;
    const made = pulls.figures.find(({ name }) => name.startsWith("made and read"))?.medianMs ?? 0;
    return {
      tables: sections.map(tableOf),
      measured: {
        "machines: TCP x raw": ratioTo(many, farTcp, (name) => name === tcpName),
        "machines: TLS x TCP": ratioTo(many, farTls, (name) => name === farTcp),
        "machines: TLS x TCP, serial": ratioTo(serial, farTls, (name) => name === farTcp),
        "machines: pull GB/s": (elements * 8) / 1e6 / (pulled - made),
        "machines: placement us": 1000 * (places.figures[0]?.medianMs ?? 0),
      },
      details: sections,
    };
  } finally {
    await ray.shutdown();
    await Promise.all(agents.map((agent) => agent.close()));
    await rm(folder, { recursive: true });
  }
}

async function measureFarCalls(
  certificates: string,
  idOf: (name: string) => string,
  plan: RoundPlan,
  say: Progress,
): Promise<Measured[]> {
  const subjects: Subject[] = [];
  try {
    for (const start of [
      rawSocketSubject,
      () => rawTcpSubject(),
      () => rawTcpSubject(certificates),
      raylingProcessSubject,
      () => raylingFarSubject(farTcp, idOf("tcp")),
      () => raylingFarSubject(farTls, idOf("tls")),
    ]) {
      subjects.push(await start());
    }
    return await measureSubjects(
      subjects,
      [
        [1, oneAtATime],
        [1000, inFlight],
      ],
      plan,
      say,
    );
  } finally {
    await Promise.all(subjects.map((subject) => subject.close()));
  }
}

async function measurePull(
  elements: number,
  idOf: (name: string) => string,
  plan: RoundPlan,
  say: Progress,
): Promise<Measured> {
  const section = pull(elements * 8);
  const on = (name: string): ray.ActorOptions => ({
    schedulingStrategy: { kind: "NODE_AFFINITY", nodeId: idOf(name), soft: false },
  });
  const [maker, far, near] = [
    Maker.options({ isolation: "process" }).remote(),
    Maker.options(on("tcp")).remote(),
    Maker.options({ isolation: "process" }).remote(),
  ];
  const secure = Maker.options(on("tls")).remote();
  const read = async (
    from: ray.ActorHandle<MakerInstance>,
    by: ray.ActorHandle<MakerInstance>,
  ): Promise<void> => {
    const last = await ray.get(by.last.remote(from.make.remote(elements)));
    if (last !== elements) throw new Error(`the last value was ${last}, not ${elements}`);
  };
  const contestants = [
    { name: "made and read in one process", run: () => read(near, near) },
    { name: processName, run: () => read(maker, near) },
    { name: farTcp, run: () => read(far, near) },
    { name: farTls, run: () => read(secure, near) },
  ];
  const rounds = { ...plan, rounds: Math.min(plan.rounds, 3) };
  const samples = await interleave(contestants, rounds, (round) =>
    say(`${section.title}: round ${round}`),
  );
  await Promise.all([maker, far, near, secure].map((one) => ray.kill(one)));
  return { ...section, figures: samples.map(figureOf) };
}

/** More than a decision: the group is made, placed, told, and removed. */
async function measurePlacement(plan: RoundPlan, say: Progress): Promise<Measured> {
  const cluster = new ray.Cluster();
  for (let index = 0; index < 1000; index++) await cluster.addNode({ numCpus: 4 });
  const run = async (): Promise<void> => {
    const group = ray.placementGroup([{ CPU: 1 }], { strategy: "SPREAD" });
    await ray.get(group.ready());
    await ray.removePlacementGroup(group);
  };
  const samples = await interleave([{ name: "rayling", run }], plan, (round) =>
    say(`${placement.title}: round ${round}`),
  );
  return { ...placement, figures: samples.map(figureOf) };
}
