/**
 * `rayling node`: makes this machine a node for drivers with its token, until it is stopped.
 */
import { type Agent, type CredentialFiles, readToken, startAgent } from "@rayling/cluster";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { printPart } from "../output/formats.ts";
import type { FormatFlag } from "../output/formats.ts";
import { plain, tell } from "../output/output.ts";
import { stopSignal } from "../stop-signal.ts";

export interface NodeOptions extends FormatFlag {
  readonly host: string;
  readonly port: number;
  readonly name?: string;
  readonly numCpus?: number;
  readonly resources: Readonly<Record<string, number>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly maxHosts: number;
  readonly minWorkerPort?: number;
  readonly maxWorkerPort?: number;
  readonly codeCache?: string;
  readonly codeCacheBytes?: number;
  readonly maxCodeBytes?: number;
  readonly tokenFile?: string;
  readonly publicHost?: string;
  /** A folder, or some of the three files. */
  readonly tls?: string;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

export async function runNode({
  name,
  numCpus,
  tokenFile,
  tls,
  tlsCa,
  tlsCert,
  tlsKey,
  format,
  ...options
}: NodeOptions): Promise<void> {
  const files = credentialFiles(tls, tlsCa, tlsCert, tlsKey);
  const stop = stopSignal();
  const starting = readToken(tokenFile).then((token) =>
    stop.signal.aborted
      ? undefined
      : startAgent({
          ...options,
          token,
          ...(name === undefined ? {} : { nodeName: name }),
          ...(numCpus === undefined ? {} : { numCpus }),
          ...(files === undefined ? {} : { tls: files }),
          onEvent: (line) => tell(`${new Date().toISOString()} ${plain(line)}\n`),
        }),
  );
  let agent: Agent | undefined;
  try {
    // Either may hang, on a disk or a name server that does not answer.
    agent = await stop.race(starting);
    if (agent === undefined) throw stop.signal.reason;
  } catch (error) {
    stop.close();
    if (stop.signal.aborted) {
      // The agent may come later.
      starting.then((late) => late?.close()).catch(() => undefined);
      throw stop.signal.reason;
    }
    throw new CliError(2, messageOf(error), { cause: error });
  }
  const { address } = agent;
  await printPart({ address }, format, () => [
    "This machine is a node. In a driver that may reach it:",
    "",
    `  await ray.init({ nodes: [${JSON.stringify(address)}] })`,
    "",
    `or RAYLING_NODES=${address}`,
  ]);
  try {
    await stop.race(agent.closed);
  } catch {
    await agent.close();
  } finally {
    stop.close();
  }
}

/** @throws CliError when only some of the files are named */
function credentialFiles(
  folder: string | undefined,
  ca: string | undefined,
  cert: string | undefined,
  key: string | undefined,
): CredentialFiles | undefined {
  if (ca !== undefined && cert !== undefined && key !== undefined) return { ca, cert, key };
  if (ca === undefined && cert === undefined && key === undefined) return folder;
  throw new CliError(
    2,
    "--tls-ca, --tls-cert and --tls-key belong together: name all of them, or --tls",
  );
}
