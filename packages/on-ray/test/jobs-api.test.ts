/** Requests to Ray's dashboard, against whatever else answers at its address. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { RaySystemError } from "@rayling/core";
import { expect, onTestFinished, test } from "vitest";
import { JobsApi } from "../src/jobs/jobs-api.ts";

async function dashboard(
  answer: RequestListener,
  signal?: AbortSignal,
  timeoutMs = 50,
): Promise<JobsApi> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return new JobsApi(`http://127.0.0.1:${port}`, undefined, { timeoutMs, signal });
}

const job = { entrypoint: "true", runtimeEnv: {}, metadata: {} };

const methods: readonly [string, (jobs: JobsApi) => Promise<unknown>][] = [
  ["upload", (jobs) => jobs.upload("package", async () => Buffer.alloc(10))],
  ["submit", (jobs) => jobs.submit(job)],
  ["stop", (jobs) => jobs.stop("job")],
  ["state", (jobs) => jobs.state("job")],
  ["logs", (jobs) => jobs.logs("job")],
];

test.for(methods)("%s waits for no dashboard that stands still", async ([, method]) => {
  const silent = await dashboard(() => undefined);
  await expect(method(silent)).rejects.toThrow(RaySystemError);
  const half = await dashboard((_, response) => response.writeHead(200).write('{"half": '));
  await expect(method(half)).rejects.toThrow(
    /^the Ray cluster at \S+ cannot be reached: it has not answered \w+ \/api\S+ for 0\.05 s$/,
  );
});

test("a dashboard that stands still after it has sent a part late is not waited for either", async () => {
  const slow = await dashboard((_, response) => {
    response.writeHead(200).flushHeaders();
    let parts = 0;
    const timer = setInterval(() => {
      response.write(" ");
      if (++parts === 3) clearInterval(timer);
    }, 70);
  });
  await expect(slow.state("job")).rejects.toThrow(RaySystemError);
});

test("an abort ends all but the stop of a job", async () => {
  const ended = new AbortController();
  const jobs = await dashboard(
    (request, response) => {
      if (request.url?.endsWith("/stop") === true) response.end("{}");
      else ended.abort(new Error("the session has ended"));
    },
    ended.signal,
    2 ** 31 - 1,
  );
  await expect(jobs.submit(job)).rejects.toThrow(/^the session has ended$/);
  await expect(jobs.pause(2 ** 31 - 1)).rejects.toThrow(/^the session has ended$/);
  await jobs.stop("job");
});

test.for([
  ["a page", "<html>Sign in</html>"],
  ["nothing", ""],
  ["another JSON", '{"ok": true}'],
] as const)("%s is no answer of Ray's: the error names the address", async ([, text]) => {
  const jobs = await dashboard((_, response) => response.end(text), undefined, 30_000);
  for (const name of ["submit", "state", "logs"]) {
    const asked = methods.find(([one]) => one === name)![1](jobs);
    await expect(asked).rejects.toThrow(RaySystemError);
    await expect(asked).rejects.toThrow(
      /^what answers (POST|GET) \/api\/jobs\/\S* at http:\S+ is no Ray dashboard, or something/,
    );
  }
});
