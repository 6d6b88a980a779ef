/** Certificates of a session, as Node's and OpenSSL's readers see them. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import {
  makeMachineKey,
  selfSigned,
  SessionAuthority,
} from "../src/session-tls/session-authority.ts";

const machine = (authority: SessionAuthority, ...hosts: readonly string[]) => {
  const { privateKey, publicKey } = makeMachineKey();
  return { ca: authority.ca, cert: authority.certify(hosts, publicKey), key: privateKey };
};

/** What both sides say of a connection. */
async function greeting(
  server: ReturnType<typeof machine>,
  client: ReturnType<typeof machine>,
  host: string,
): Promise<unknown> {
  const listener = createServer({
    ...server,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: "TLSv1.3",
  });
  onTestFinished(() => void listener.close());
  listener.listen(0, host);
  await once(listener, "listening");
  // The client says what it thinks of this side, and hears what this side thinks of it.
  listener.on("secureConnection", (socket) => socket.on("error", () => undefined).end("welcome"));
  listener.on("tlsClientError", () => undefined);
  const { port } = listener.address() as AddressInfo;
  const socket = connect({ ...client, host, port, minVersion: "TLSv1.3" });
  const said = Promise.race([
    once(socket, "data").then(String),
    once(socket, "close").then(() => "closed"),
  ]).catch((error: unknown) => String(error));
  const answer = await said;
  socket.destroy();
  return answer;
}

test("machines of one session accept each other, by address", async () => {
  const authority = new SessionAuthority();
  const [agent, driver] = [machine(authority, "127.0.0.1", "::1"), authority.own()];
  expect(await greeting(agent, driver, "127.0.0.1")).toBe("welcome");
});

test("a machine of another session is refused, and so is another name", async () => {
  const [authority, other] = [new SessionAuthority(), new SessionAuthority()];
  const agent = machine(authority, "127.0.0.1");
  const stranger = { ...other.own(), ca: authority.ca };
  expect(await greeting(agent, stranger, "127.0.0.1")).toMatch(
    /closed|alert|certificate|hang up|RESET/,
  );
  expect(await greeting(machine(authority, "10.0.0.9"), authority.own(), "127.0.0.1")).toMatch(
    /not in the cert's list/,
  );
});

test("the content is as RFC 5280 has it", () => {
  const authority = new SessionAuthority();
  const ca = new X509Certificate(authority.ca);
  const cert = new X509Certificate(machine(authority, "node-1", "10.0.0.7", "fd00::12:7").cert);
  expect([ca.ca, cert.ca]).toEqual([true, false]);
  expect(cert.verify(ca.publicKey)).toBe(true);
  expect(cert.checkIssued(ca)).toBe(true);
  expect(cert.subjectAltName).toBe(
    "DNS:node-1, IP Address:10.0.0.7, IP Address:FD00:0:0:0:0:0:12:7",
  );
  expect(cert.checkIP("fd00::12:7")).toBe("fd00::12:7");
  expect(Date.parse(cert.validTo)).toBeGreaterThan(Date.now() + 80 * 86_400_000);
  const own = new X509Certificate(selfSigned(["10.0.0.1"]).cert);
  expect(own.verify(own.publicKey)).toBe(true);
});
