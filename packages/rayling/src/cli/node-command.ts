/** `rayling node`: makes this machine a node for drivers that have its token, until it is stopped. */
import { type Agent, readToken, startAgent } from "@rayling/cluster";
import { CliError } from "./cli-error.ts";
import { stopSignal } from "./stop-signal.ts";

export interface NodeOptions {
  readonly host: string;
  readonly port: number;
  readonly name?: string;
  readonly numCpus?: number;
  readonly resources: Readonly<Record<string, number>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly maxHosts: number;
  readonly codeCache?: string;
  readonly codeCacheBytes?: number;
  readonly maxCodeBytes?: number;
  readonly tokenFile?: string;
}

export async function runNode({
  name,
  numCpus,
  tokenFile,
  ...options
}: NodeOptions): Promise<void> {
  const stop = stopSignal();
  let agent: Agent;
  try {
    agent = await startAgent({
      ...options,
      token: await readToken(tokenFile),
      ...(name === undefined ? {} : { nodeName: name }),
      ...(numCpus === undefined ? {} : { numCpus }),
      onEvent: (line) => process.stderr.write(`${new Date().toISOString()} ${line}\n`),
    });
  } catch (error) {
    stop.close();
    throw new CliError(2, (error as Error).message, { cause: error });
  }
  process.stdout.write(
    `This machine is a node. In a driver that may reach it:\n\n  await ray.init({ nodes: [${JSON.stringify(agent.address)}] })\n\nor RAYLING_NODES=${agent.address}\n`,
  );
  // The agent's connections hold no process; this does, until a signal comes.
  const forever = setInterval(() => undefined, 2 ** 30);
  try {
    await stop.race(new Promise(() => undefined));
  } catch {
    await agent.close();
  } finally {
    clearInterval(forever);
    stop.close();
  }
}
