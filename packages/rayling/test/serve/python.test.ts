/** The Python client, by its own tests in python/tests: they start servers like the command of this checkout, and need nothing but Python. */

import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { workspace } from "../command.ts";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** Why they cannot run here; undefined where they can. */
function problem(): string | undefined {
  const question = "import sys; print(sys.version_info >= (3, 10))";
  try {
    const answer = execFileSync("python3", ["-c", question], { encoding: "utf8" });
    return answer.trim() === "True" ? undefined : "python3 is older than 3.10";
  } catch {
    // Not there.
    return "there is no python3";
  }
}

test("the Python client scores, tries again, goes on over a kill, and does what TRL asks of it", async ({
  skip,
}) => {
  const reason = problem();
  if (reason !== undefined) skip(reason);
  const { stderr } = await promisify(execFile)(
    "python3",
    ["-B", "-m", "unittest", "discover", "-s", join(workspace, "python/tests")],
    { env: { ...process.env, RAYLING_SERVE: JSON.stringify([process.execPath, main]) } },
  );
  expect(stderr).toMatch(/^Ran \d+ tests[^]*^OK$/m);
});
