/** The example for Kubernetes: its server starts with its arguments on its judge, its probe finds it ready, and it takes the name of its service. */

import { execFile } from "node:child_process";
import { once } from "node:events";
import { get } from "node:http";
import type { IncomingMessage } from "node:http";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { folder, shown, startIn, workspace } from "../command.ts";

const run = promisify(execFile);

interface Kubernetes {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly ports: readonly { readonly port: number }[];
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly [
          {
            readonly args: readonly string[];
            /** The token has no value here: it is a secret. */
            readonly env: readonly { readonly name: string; readonly value?: string }[];
            readonly readinessProbe: { readonly exec: { readonly command: readonly string[] } };
          },
        ];
      };
    };
  };
}

test("the judges of the example serve, and are found ready", async () => {
  const text = await readFile(join(workspace, "examples/kubernetes/judges.yaml"), "utf8");
  const documents = parseAllDocuments(text).map((one) => one.toJS() as Kubernetes);
  const [files, service, deployment] = documents;
  const { containers, terminationGracePeriodSeconds } =
    deployment?.spec.template.spec ?? expect.unreachable();
  const [{ args, env, readinessProbe }] = containers;
  expect(service?.spec.ports).toMatchObject([{ port: 8100 }]);
  expect(args).toContain(`--allowed-host=${service?.metadata.name}`);
  const drain = Number(/--drain-timeout=(\d+)/.exec(args.join(" "))?.[1]);
  expect(terminationGracePeriodSeconds).toBeGreaterThan(drain);

  const judges = await folder();
  for (const [name, content] of Object.entries(files?.data ?? {})) {
    await writeFile(join(judges, name), content);
  }
  // Where the image has its packages.
  await symlink(join(workspace, "packages/rayling/node_modules"), join(judges, "node_modules"));
  const own = args.map((one) =>
    one.replace("/judges/", `${judges}/`).replace("0.0.0.0:8100", "0.0.0.0:0"),
  );
  const token = "t".repeat(64);
  for (const { name, value = token } of env) {
    process.env[name] = value;
    onTestFinished(() => void delete process.env[name]);
  }
  const serving = startIn(judges, ...own, "--workers", "1");
  onTestFinished(() => void serving.child.kill("SIGKILL"));
  const [, port = ""] = await shown(serving, /Serving rewards on \S+:(\d+)\n/);
  const [, script = ""] = readinessProbe.exec.command;
  const probe = join(judges, script.replace("/judges/", ""));
  const asked = await readFile(probe, "utf8");
  await writeFile(probe, asked.replace("8100", port));
  await run(process.execPath, [probe]);
  const headers = {
    host: `${service?.metadata.name}:${port}`,
    authorization: `Bearer ${token}`,
  };
  const asking = get(`http://127.0.0.1:${port}/healthz`, { headers });
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  answer.resume();
  expect(answer.statusCode).toBe(200);
  serving.child.kill("SIGTERM");
  expect(await serving.ended).toMatchObject({ code: 0 });
});
