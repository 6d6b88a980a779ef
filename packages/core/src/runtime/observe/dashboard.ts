/**
 * The live page as core sees it: an outside server that shows a session, and what it is given.
 *
 * Core serves no page: `provideDashboard` injects the server, which loads when `init` asks for one.
 * Nothing here costs anything until a page asks.
 */
import type { DriverCommands, LogPart } from "../../rpc/commands.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { threadSlot } from "../../shared/thread-slot.ts";

/** Where the live page is served. */
export interface DashboardOptions {
  /** The port. Default: the first free one from 8266. */
  readonly port?: number | undefined;
  /** The address to listen on. Default 127.0.0.1. */
  readonly host?: string | undefined;
}

/** A session as its page sees it. */
export interface DashboardSession extends Pick<
  DriverCommands,
  "status" | "list" | "summarize" | "memory"
> {
  /** Lines from that number on; undefined when the driver does not collect them. */
  logs(from: number): LogPart | undefined;
  /** Kills an actor for good. Resolves when it is dead, or where there is none of that id. */
  killActor(actorId: string): Promise<void>;
}

/** The page while it is served. */
export interface Dashboard {
  /** The link for a person, with the token. */
  readonly url: string;
  /** Ends every connection. Idempotent. */
  close(): Promise<void>;
}

/** Rejects when it cannot listen there. */
export type DashboardServer = (
  session: DashboardSession,
  options: DashboardOptions,
) => Promise<Dashboard>;

/** Something in the driver that has a place on the page while it lives. */
export interface DashboardPanel {
  /** The kind of it, which decides how the page shows it: "rewardLoop". */
  readonly kind: string;
  /** Returns its present state as plain data. Called while a page shows it. */
  readonly state: () => Promise<unknown>;
  /** The reward log that it writes. */
  readonly rewardLog?: string | undefined;
  /** The folder of the training run that it is. */
  readonly runFolder?: string | undefined;
}

interface DashboardSlot {
  load: (() => Promise<DashboardServer>) | undefined;
  isServed: boolean;
  readonly panels: Set<DashboardPanel>;
}

const slot: DashboardSlot = threadSlot("dashboard", () => ({
  load: undefined,
  isServed: false,
  panels: new Set(),
}));

/** Injects the server of the page. The first one counts. */
export function provideDashboard(load: () => Promise<DashboardServer>): void {
  slot.load ??= load;
}

/** Whether the session of this thread serves the page: only then there is anything to count for. */
export function isDashboardServed(): boolean {
  return slot.isServed;
}

/** Panels go with the session. */
export function setDashboardServed(isServed: boolean): void {
  slot.isServed = isServed;
  if (!isServed) slot.panels.clear();
}

/** Adds a panel. Returns what removes it. */
export function addDashboardPanel(panel: DashboardPanel): () => void {
  slot.panels.add(panel);
  return () => void slot.panels.delete(panel);
}

export function dashboardPanels(): readonly DashboardPanel[] {
  return [...slot.panels];
}

/** Throws InvalidOptionError when no server was injected. */
export async function dashboardServer(): Promise<DashboardServer> {
  if (slot.load !== undefined) return await slot.load();
  throw new InvalidOptionError(
    "dashboard",
    "option dashboard needs @rayling/dashboard: import init from rayling, or call provideDashboard of @rayling/core/dashboard first",
  );
}
