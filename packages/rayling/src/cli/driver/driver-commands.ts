/**
 * The commands for a running driver, in the order of the help. The file of a command has its flags
 * and texts; what speaks to a driver loads when one is looked for (drivers.ts).
 */
import type { Command } from "commander";
import { addGetCommand } from "./get-command.ts";
import { addKillCommand } from "./kill-command.ts";
import { addListCommand, addSummaryCommand } from "./list-command.ts";
import { addLogsCommand } from "./logs-command.ts";
import { addMemoryCommand } from "./memory-command.ts";
import { addStackCommand } from "./stack-command.ts";
import { addStatusCommand } from "./status-command.ts";
import { addStopCommand } from "./stop-command.ts";
import { addTimelineCommand } from "./timeline-command.ts";

export function addDriverCommands(program: Command): void {
  addStatusCommand(program);
  addListCommand(program);
  addGetCommand(program);
  addSummaryCommand(program);
  addStackCommand(program);
  addMemoryCommand(program);
  addLogsCommand(program);
  addTimelineCommand(program);
  addKillCommand(program);
  addStopCommand(program);
}
