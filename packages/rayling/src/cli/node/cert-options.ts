/** The flags of `rayling cert`: their texts, defaults and checks. */
import { type Command, InvalidArgumentError } from "commander";
import { count } from "../flag-values.ts";
import { addFormatFlag } from "../output/formats.ts";
import type { CertOptions } from "./cert-command.ts";

/** @param run does the work; it loads when the command runs */
export function addCertCommand(
  program: Command,
  run: (options: CertOptions) => Promise<void>,
): void {
  const command = program
    .command("cert")
    .summary("make certificates for machines that are to reach each other")
    .description(
      "Makes a certificate for this machine, or for another one, and an authority for all of them if there is none. Agents that others can reach, and their drivers, show each other such certificates.",
    )
    .option(
      "--host <name...>",
      "names and addresses by which the machine is reached (default: all that this machine has)",
      [],
    )
    .option(
      "--authority <folder>",
      "where ca.pem and ca-key.pem are, or are made (default: ~/.rayling/tls)",
    )
    .option("--out <folder>", "where the certificate goes (default: the authority's folder)")
    .option("--days <count>", "how long it is valid", dayCount, 365);
  addFormatFlag(command).allowExcessArguments(false).action(run);
}

/** Parses days, up to a century: an authority lasts for ten years. */
function dayCount(text: string): number {
  const days = count(1)(text);
  if (days <= mostDays) return days;
  throw new InvalidArgumentError(`It must be a whole number of days, from 1 to ${mostDays}.`);
}

const mostDays = 36_500;
