/**
 * `rayling kill`: ends one actor of a driver for good.
 */
import type { Command } from "commander";
import type { ActorRow, DriverClient } from "@rayling/core/control";
import { CliError } from "../cli-error.ts";
import { print } from "../output/formats.ts";
import { plain } from "../output/output.ts";
import { driverCommand, type DriverFlags } from "../session-flags.ts";
import { withDriver } from "./drivers.ts";

const answerMs = 10_000;

/** Adds `rayling kill`. */
export function addKillCommand(program: Command): void {
  driverCommand(program, "kill")
    .summary("end one actor of a running driver for good")
    .description("Kills an actor. It is not restarted, and its calls fail with ActorDiedError.")
    .argument("<actor>", "its id or its name, as `rayling list actors` shows it")
    .action(killActor);
}

/** @param actor its id or its name. Rejects with CliError 1 when there is none that lives. */
export async function killActor(actor: string, flags: DriverFlags): Promise<void> {
  await withDriver(flags, async (driver) => {
    const { actorId, className, state } = await actorOf(driver, actor);
    if (state === "DEAD") throw new CliError(1, `the actor ${actorId} (${className}) is dead`);
    await driver.ask("killActor", [actorId], answerMs);
    const answer = { actorId, className, state: "DEAD" };
    await print(answer, flags.format ?? "table", () => [
      `the actor ${plain(actorId)} (${plain(className)}) was killed`,
    ]);
  });
}

async function actorOf(driver: DriverClient, actor: string): Promise<ActorRow> {
  for (const column of ["actorId", "name"]) {
    const options = { filters: [[column, "=", actor] as const], limit: 100 };
    const { rows } = await driver.ask("list", ["actors", options], answerMs);
    const [first, ...others] = rows.filter(isActor).toSorted(livingFirst);
    if (others.some(({ state }) => state !== "DEAD")) {
      const ids = rows.filter(isActor).map(({ actorId }) => actorId);
      throw new CliError(2, `several actors are called ${actor}: ${ids.join(", ")}`);
    }
    if (first !== undefined) return first;
  }
  throw new CliError(1, `the driver has no actor with the id or name ${actor}`);
}

function isActor(row: unknown): row is ActorRow {
  return typeof row === "object" && row !== null && "actorId" in row && "className" in row;
}

function livingFirst(one: ActorRow, other: ActorRow): number {
  return Number(one.state === "DEAD") - Number(other.state === "DEAD");
}
