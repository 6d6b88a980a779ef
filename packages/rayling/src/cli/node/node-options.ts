/**
 * The flags of `rayling node`: their texts, defaults and checks. The command itself loads when it
 * runs.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import { byteCount, count, hostAndPort } from "../flag-values.ts";
import { addFormatFlag } from "../output/formats.ts";
import type { NodeOptions } from "./node-command.ts";

type Flags = Omit<NodeOptions, "host" | "port" | "codeCacheBytes" | "maxCodeBytes"> & {
  readonly listen: readonly [string, number];
  readonly codeCacheSize?: number;
  readonly maxCodeSize?: number;
};

/** @param start does the work; it loads when its command runs */
export function addNodeCommand(
  program: Command,
  start: (options: NodeOptions) => Promise<void>,
): void {
  const command = program
    .command("node")
    .summary("make this machine a node for drivers on other machines")
    .description(
      "Starts an agent that runs actors and tasks for drivers that have its token, and prints the line to paste into init. Ctrl-C stops it and all it runs. For more than a few machines there is Ray: rayling run --on-ray.",
    )
    .option(
      "--listen <host:port>",
      "anything but a loopback address needs certificates; port 0: one that is free",
      hostAndPort,
      ["127.0.0.1", 6399] as const,
    );
  addOfferFlags(command);
  addCodeFlags(command);
  addAccessFlags(command);
  addFormatFlag(command)
    .allowExcessArguments(false)
    .action((given: Flags) => start(readOptions(given)));
}

/** Flags for all that the node offers to drivers. */
function addOfferFlags(command: Command): void {
  command
    .option("--name <name>", "of the node (default: the name of the machine)")
    .option(
      "--num-cpus <count>",
      "CPUs that it offers to each driver (default: all of them)",
      count(0),
    )
    .option(
      "--resources <name=amount>",
      "another resource that it offers to each driver; may be repeated",
      amount,
      {},
    )
    .option("--labels <name=value>", "labels for placement; may be repeated", label, {})
    .option(
      "--max-hosts <count>",
      "hosts that run at once, of all drivers together",
      count(1),
      1000,
    )
    .option(
      "--min-worker-port <port>",
      "the first port that hosts listen on, for a firewall that lets some through (default: any that is free)",
      count(1),
    )
    .option("--max-worker-port <port>", "the last one; each host takes one of them", count(1));
}

/** Flags for the code that drivers bring. */
function addCodeFlags(command: Command): void {
  command
    .option(
      "--code-cache <directory>",
      "where code is kept that drivers bring (default: ~/.rayling/code)",
    )
    .option(
      "--code-cache-size <size>",
      "how much of it is kept; the least recently used goes first (default: 10GiB)",
      byteCount,
    )
    .option(
      "--max-code-size <size>",
      "how much one driver's code may have, uncompressed (default: 500MiB)",
      byteCount,
    );
}

/** Flags for how drivers reach the node, and for what they must show. */
function addAccessFlags(command: Command): void {
  command
    .option(
      "--token-file <path>",
      "file with the token of drivers; made if it does not exist (default: ~/.rayling/token)",
    )
    .option(
      "--public-host <name>",
      "by what drivers reach it, if it listens on all addresses (default: the first name in its certificate)",
    )
    .option(
      "--tls <folder>",
      "with ca.pem, cert.pem and key.pem, as rayling cert makes it (default: RAYLING_TLS; beyond loopback, ~/.rayling/tls)",
    )
    .addOption(certificateFile("ca", "authorities whose certificates are trusted"))
    .addOption(certificateFile("cert", "the certificate of this machine"))
    .addOption(certificateFile("key", "the key of --tls-cert"));
}

function readOptions({ listen, codeCacheSize, maxCodeSize, ...flags }: Flags): NodeOptions {
  const [host, port] = listen;
  return {
    host,
    port,
    ...flags,
    ...(codeCacheSize === undefined ? {} : { codeCacheBytes: codeCacheSize }),
    ...(maxCodeSize === undefined ? {} : { maxCodeBytes: maxCodeSize }),
  };
}

function certificateFile(name: string, what: string): Option {
  return new Option(`--tls-${name} <file>`, `${what}, in place of --tls`).conflicts("tls");
}

function amount(text: string, others: Readonly<Record<string, number>>): Record<string, number> {
  const [name, value] = pair(text);
  const parsed = Number(value);
  if (!Number.isFinite(parsed) || parsed < 0) {
    throw new InvalidArgumentError("It must be name=amount, with an amount of 0 or more.");
  }
  return { ...others, [name]: parsed };
}

function label(text: string, others: Readonly<Record<string, string>>): Record<string, string> {
  const [name, value] = pair(text);
  return { ...others, [name]: value };
}

function pair(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at <= 0 || at === text.length - 1) throw new InvalidArgumentError("It must be name=value.");
  return [text.slice(0, at), text.slice(at + 1)];
}
