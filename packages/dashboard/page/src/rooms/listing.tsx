/** Rooms of rows: actors, tasks, objects, placement groups, workers, nodes. */
import type { JSX } from "preact";
import { changeQuery } from "../data/address.ts";
import type { RowsAnswer } from "../data/session.ts";
import { bytes, count, idText } from "../data/text.ts";
import { useLive } from "../data/views.ts";
import { Room, Waiting } from "../parts/panel.tsx";
import { State, Table } from "../parts/table.tsx";
import type { Column, Row } from "../parts/table.tsx";

/** Ids stay on one line. */
const idColumn = (key: string, title: string): Column => ({
  key,
  title,
  show: (row) => <span class="id">{idText(row[key])}</span>,
});

const stateColumn = (key: string, title: string): Column => ({
  key,
  title,
  show: (row) => <State state={String(row[key])} />,
});

export interface Listing {
  readonly title: string;
  readonly key: string;
  readonly columns: readonly Column[];
}

export function ActorLink({ id }: { readonly id: unknown }): JSX.Element {
  if (typeof id !== "string") return <>–</>;
  return (
    <a class="id" href={`#/actor/${encodeURIComponent(id)}`}>
      {id}
    </a>
  );
}

export const listings: Readonly<Record<string, Listing>> = {
  actors: {
    title: "Actors",
    key: "actorId",
    columns: [
      { key: "actorId", title: "Actor", show: ({ actorId }) => <ActorLink id={actorId} /> },
      { key: "className", title: "Class" },
      stateColumn("state", "State"),
      { key: "name", title: "Name" },
      { key: "numRestarts", title: "Restarts", isNumber: true },
      { key: "runningCalls", title: "Running", isNumber: true },
      { key: "queuedCalls", title: "Queued", isNumber: true },
      { key: "executedCalls", title: "Done", isNumber: true },
      {
        key: "deathCause",
        title: "Cause of death, or why it waits",
        show: ({ deathCause, pendingReason }) => idText(deathCause ?? pendingReason),
      },
      { key: "requiredResources", title: "Holds" },
      idColumn("workerId", "Worker"),
      idColumn("nodeId", "Node"),
      { key: "pid", title: "Process", show: ({ pid }) => idText(pid) },
    ],
  },
  tasks: {
    title: "Tasks",
    key: "taskId",
    columns: [
      idColumn("taskId", "Task"),
      { key: "name", title: "Name" },
      stateColumn("state", "State"),
      { key: "type", title: "Type" },
      { key: "actorId", title: "Actor", show: ({ actorId }) => <ActorLink id={actorId} /> },
      {
        key: "errorType",
        title: "Error",
        show: ({ errorType, errorMessage }) =>
          [errorType, errorMessage].filter(Boolean).join(": ") || "–",
      },
      idColumn("workerId", "Worker"),
      idColumn("ownerId", "Owner"),
      idColumn("parentTaskId", "Parent"),
    ],
  },
  objects: {
    title: "Objects",
    key: "objectId",
    columns: [
      idColumn("objectId", "Object"),
      { key: "name", title: "Made by" },
      {
        key: "objectSize",
        title: "Size",
        isNumber: true,
        show: ({ objectSize }) =>
          typeof objectSize === "number" && objectSize >= 0 ? bytes(objectSize) : "–",
      },
      stateColumn("taskStatus", "State"),
      { key: "referenceType", title: "Reference" },
      idColumn("ownerId", "Owner"),
      { key: "holders", title: "Held by" },
    ],
  },
  placementGroups: {
    title: "Placement groups",
    key: "placementGroupId",
    columns: [
      idColumn("placementGroupId", "Group"),
      { key: "name", title: "Name" },
      stateColumn("state", "State"),
      { key: "strategy", title: "Strategy" },
      { key: "bundles", title: "Bundles" },
      { key: "bundlesToNodeId", title: "On nodes" },
      { key: "pendingReason", title: "Why it waits" },
    ],
  },
  workers: {
    title: "Workers",
    key: "workerId",
    columns: [
      idColumn("workerId", "Worker"),
      { key: "workerType", title: "Type" },
      {
        key: "isAlive",
        title: "State",
        show: ({ isAlive }) => <State state={isAlive === true ? "ALIVE" : "DEAD"} />,
      },
      { key: "isolation", title: "Isolation" },
      { key: "pid", title: "Process", show: ({ pid }) => idText(pid) },
      idColumn("nodeId", "Node"),
      {
        key: "exitDetail",
        title: "End",
        show: ({ exitType, exitDetail }) => idText(exitDetail ?? exitType),
      },
    ],
  },
  nodes: {
    title: "Nodes",
    key: "nodeId",
    columns: [
      idColumn("nodeId", "Node"),
      { key: "nodeName", title: "Name" },
      { key: "nodeIp", title: "Address" },
      stateColumn("state", "State"),
      { key: "resourcesTotal", title: "Has", show: (row) => amounts(row["resourcesTotal"]) },
      {
        key: "resourcesAvailable",
        title: "Free",
        show: (row) => amounts(row["resourcesAvailable"]),
      },
      { key: "labels", title: "Labels" },
      { key: "stateMessage", title: "Message" },
    ],
  },
};

function amounts(of: unknown): string {
  if (typeof of !== "object" || of === null) return "–";
  return Object.entries(of)
    .map(([name, value]) => {
      const amount = Number(value);
      return `${name} ${name.endsWith("memory") ? bytes(amount) : count(amount)}`;
    })
    .join(", ");
}

interface ListingProps {
  readonly what: string;
  readonly listing: Listing;
  readonly query: URLSearchParams;
}

export function ListingRoom({ what, listing, query }: ListingProps): JSX.Element {
  const { data, problem } = useLive<RowsAnswer>(what, query.toString());
  const order = {
    column: query.get("sort") ?? undefined,
    isDescending: query.get("order") === "descending",
  };
  return (
    <Room title={listing.title} problem={problem}>
      <Search query={query} found={data === undefined ? "" : foundText(data)} />
      {data === undefined ? (
        <Waiting />
      ) : (
        <Table
          label={listing.title}
          columns={listing.columns}
          rows={data.rows}
          keyOf={(row: Row) => String(row[listing.key])}
          order={order}
          onOrder={({ column, isDescending }) =>
            changeQuery({ sort: column, order: isDescending ? "descending" : undefined })
          }
        />
      )}
    </Room>
  );
}

function foundText({ found, total, rows, missing }: RowsAnswer): string {
  const all = found === total ? count(total) : `${count(found)} of ${count(total)}`;
  const first = rows.length < found ? `, the first ${count(rows.length)} shown` : "";
  const without = missing.length > 0 ? `, without ${missing.join(", ")}` : "";
  return `${all}${first}${without}`;
}

interface SearchProps {
  readonly query: URLSearchParams;
  readonly found: string;
}

export function Search({ query, found }: SearchProps): JSX.Element {
  return (
    <search class="bar">
      <label>
        Filter{" "}
        <input
          type="search"
          value={query.get("text") ?? ""}
          onInput={({ currentTarget }) => changeQuery({ text: currentTarget.value })}
        />
      </label>
      <span class="dim" role="status">
        {found}
      </span>
    </search>
  );
}
