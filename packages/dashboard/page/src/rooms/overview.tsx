/** Overview: the session on one screen. */
import type { JSX } from "preact";
import { useHistory } from "../data/curve-history.ts";
import type { NodeStatus, Overview } from "../data/session.ts";
import { bytes, count, duration, figure } from "../data/text.ts";
import { useLive } from "../data/views.ts";
import { Chart } from "../parts/chart.tsx";
import { Logs } from "../parts/logs.tsx";
import { Facts, Panel, Room, Waiting } from "../parts/panel.tsx";
import { State, Table } from "../parts/table.tsx";

const calls = [{ label: "calls per second", colour: 0 }];

export function OverviewRoom(): JSX.Element {
  const { data, problem } = useLive<Overview>("overview");
  const rate = data?.callsPerSecond;
  const history = useHistory(data, [rate]);
  if (data === undefined) {
    return (
      <Room title="Overview" problem={problem}>
        <Waiting />
      </Room>
    );
  }
  return (
    <Room title="Overview" problem={problem ?? missingText(data.missing)}>
      <Figures data={data} />
      <div class="columns">
        <Panel title="Calls of actors per second">
          <Chart
            label={`Calls of actors per second: ${figure(rate)} now`}
            series={calls}
            data={history}
            isTime
          />
        </Panel>
        <Panel title="Nodes">
          {data.status.nodes.map((node) => (
            <Node key={node.nodeId} node={node} />
          ))}
        </Panel>
        <Panel title="Actors by class">
          <ByClass data={data} />
        </Panel>
        <Panel title="Waiting, and why">
          <Stuck data={data} />
        </Panel>
      </div>
      <Panel title="Last lines">
        <Logs tail={data.logs} />
      </Panel>
    </Room>
  );
}

function missingText(missing: readonly string[]): string | undefined {
  if (missing.length === 0) return undefined;
  return `Hosts that do not answer, so that their share is missing: ${missing.join(", ")}`;
}

function Figures({ data }: { readonly data: Overview }): JSX.Element {
  const { status, memory, running, queued, tasks } = data;
  const { driver, timeMs } = status;
  const alive = status.actors["ALIVE"] ?? 0;
  const dead = status.actors["DEAD"] ?? 0;
  return (
    <Facts
      facts={[
        { name: "Actors alive", value: count(alive) },
        { name: "Actors dead", value: count(dead), isWarning: dead > 0 },
        { name: "Calls per second", value: figure(data.callsPerSecond) },
        { name: "Calls running", value: count(running) },
        { name: "Calls queued", value: count(queued) },
        { name: "Calls and tasks pending", value: count(tasks.total) },
        {
          name: "Big values",
          value: `${bytes(memory.processBytes)} of ${bytes(memory.processLimitBytes)}`,
        },
        { name: "On disk", value: bytes(memory.spilledBytes) },
        { name: "Memory of the process", value: bytes(memory.residentBytes) },
        {
          name: "Runs for",
          value: duration(Math.floor((timeMs - driver.startTimeMs) / 1000) * 1000),
        },
        { name: "Script", value: driver.script.slice(driver.script.lastIndexOf("/") + 1) },
      ]}
    />
  );
}

function Node({ node }: { readonly node: NodeStatus }): JSX.Element {
  const { nodeName, hostname, state, stateMessage, resources } = node;
  return (
    <div class="node">
      <h3>
        {nodeName} <span class="dim">{hostname}</span> <State state={state} />
      </h3>
      {stateMessage === undefined ? null : <p>{stateMessage}</p>}
      {Object.entries(resources)
        .filter(([name]) => !name.startsWith("node:"))
        .map(([name, { used, total }]) => {
          const show = name === "memory" || name === "object_store_memory" ? bytes : count;
          return (
            <label key={name} class="resource">
              <span>{name}</span>
              <meter min={0} max={Math.max(total, Number.MIN_VALUE)} value={used} />
              <span class="number">
                {show(used)} of {show(total)}
              </span>
            </label>
          );
        })}
    </div>
  );
}

const states = ["ALIVE", "PENDING_CREATION", "DEPENDENCIES_UNREADY", "RESTARTING", "DEAD"];

function ByClass({ data }: { readonly data: Overview }): JSX.Element {
  const shown = states.filter((state) =>
    data.actorsByClass.some((one) => one.states[state] !== undefined),
  );
  return (
    <Table
      label="Actors by class"
      empty="There are no actors."
      keyOf={(row) => String(row["className"])}
      columns={[
        {
          key: "className",
          title: "Class",
          show: ({ className }) => (
            <a href={`#/actors?text=${encodeURIComponent(String(className))}`}>
              {String(className)}
            </a>
          ),
        },
        ...shown.map((state) => ({ key: state, title: state, isNumber: true })),
      ]}
      rows={data.actorsByClass.map(({ className, states: counts }) => ({ className, ...counts }))}
    />
  );
}

function Stuck({ data }: { readonly data: Overview }): JSX.Element {
  const waiting = data.status.pending.map(
    ({ first, count: many, reason, feasible, waitingMs }) => ({
      what: many > 1 ? `${first} and ${many - 1} more` : first,
      since: duration(Math.floor(waitingMs / 1000) * 1000),
      reason: feasible ? reason : `${reason} (no node has as much)`,
    }),
  );
  const actors = data.stuck.map(({ actorId, className, state, pendingReason }) => ({
    what: `${className} ${actorId} (${state})`,
    since: undefined,
    reason: pendingReason,
  }));
  return (
    <Table
      label="Waiting requests"
      empty="Nothing waits for a place."
      keyOf={(row) => `${String(row["what"])} ${String(row["reason"])}`}
      columns={[
        { key: "what", title: "What" },
        { key: "since", title: "Since", isNumber: true },
        { key: "reason", title: "Reason" },
      ]}
      rows={[...waiting, ...actors]}
    />
  );
}
