/** A driver in a process of its own, because Node reads NODE_EXTRA_CA_CERTS as it starts: a session with each of TOKENS. */
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { double } from "../../../test/fixtures/on-cluster.ts";

enableOnRay();
for (const token of (process.env["TOKENS"] ?? "").split(" ")) {
  process.env["RAY_AUTH_TOKEN"] = token;
  try {
    await ray.init();
    console.log(`answer ${await ray.get(double.remote(21))}`);
  } catch (error) {
    console.log(String(error));
  }
  await ray.shutdown();
}
