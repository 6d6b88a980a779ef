/** The flag of commands whose session can be on a Ray cluster. */
import type { InitOptions } from "@rayling/core";
import { type Command, InvalidArgumentError } from "commander";

/** The URL of a Ray cluster's dashboard, or "auto". */
export interface OnRayFlag {
  readonly onRay?: string | undefined;
}

/** @param what the flag does, as "runs it on" */
export function addOnRayFlag(command: Command, what: string): Command {
  return command.option(
    "--on-ray <url>",
    `${what} a Ray cluster: the URL of its dashboard, or auto on a machine of the cluster (default: RAYLING_ON_RAY)`,
    cluster,
  );
}

/** Returns the option of `init`. */
export function onRayOption({ onRay }: OnRayFlag): Pick<InitOptions, "address"> {
  if (onRay === undefined) return {};
  return { address: onRay === "auto" ? onRay : `ray+${onRay}` };
}

function cluster(text: string): string {
  if (text === "auto" || /^https?:\/\/[^@]+$/.test(text)) return text;
  throw new InvalidArgumentError("It must be http://host:port, https:// or auto, without a token.");
}
