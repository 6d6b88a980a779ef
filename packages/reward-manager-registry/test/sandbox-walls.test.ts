/** What the kernel holds of code that has passed its language: one battery for all ways of isolation, as this user and, where this is root, as an ordinary one. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { SandboxIsolation } from "@rayling/reward-manager-registry";
import { describe, expect, test } from "vitest";
import type { AttackOutcome } from "./fixtures/attack.ts";

const isRoot = process.getuid?.() === 0;
const script = fileURLToPath(new URL("./fixtures/attack.ts", import.meta.url));
const nobody = 65534;

/** Where its python3 is to be found: one that root has in its own folder nobody else can start. */
const users = [
  { user: isRoot ? "root" : "an ordinary user", uid: undefined, path: process.env["PATH"] ?? "" },
  ...(isRoot ? [{ user: "an ordinary user", uid: nobody, path: "/usr/bin:/bin" }] : []),
];

/** What docs/security.md says is not held. */
function notHeld(isolation: SandboxIsolation, user: string): readonly (string | RegExp)[] {
  switch (isolation) {
    case "bubblewrap":
    case "namespaces":
      // The kernel counts no threads of root.
      return user === "root" ? ["processes: threads without end"] : [];
    case "landlock":
      return ["processes: threads without end", "memory: many files"];
    case "process":
      return [
        "processes: threads without end",
        /^files: (?!rights|times|a device)/,
        /^memory: (by name|many files|shared, by a device)$/,
      ];
    default:
      throw new TypeError(`there is no isolation ${String(isolation)}`);
  }
}

async function attack(
  isolation: SandboxIsolation,
  how: "forked" | "launched",
  { uid, path }: (typeof users)[number],
): Promise<AttackOutcome> {
  const temporary = await mkdtemp(join(tmpdir(), "attacks-"));
  await chmod(temporary, 0o777);
  try {
    const child = spawn(process.execPath, [script, isolation, how], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { PATH: path, TMPDIR: temporary },
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    const [output] = await Promise.all([text(child.stdout), once(child, "exit")]);
    return JSON.parse(output) as AttackOutcome;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Whether that user can read what is to be run, and start what runs it. */
async function canRun({ uid, path }: (typeof users)[number]): Promise<boolean> {
  if (uid === undefined) return true;
  const look = `require("fs").accessSync(process.argv[1]);
    process.exit(require("child_process").spawnSync("python3", ["-c", ""]).status ?? 1)`;
  const env = { PATH: path };
  const child = spawn(process.execPath, ["-e", look, script], {
    uid,
    gid: uid,
    env,
    stdio: "ignore",
  });
  const [code] = await once(child, "exit").catch(() => [1]);
  return code === 0;
}

const each = ["bubblewrap", "namespaces", "landlock", "process"] as const;

describe.each(users)("as $user", (user) => {
  test.for([
    ...each.map((isolation) => ({ isolation, how: "forked" }) as const),
    ...each.map((isolation) => ({ isolation, how: "launched" }) as const),
  ])(
    "$isolation holds code that no language holds back, and that was $how",
    async ({ isolation, how }, { skip }) => {
      skip(!(await canRun(user)), "another user reaches no python3, no Node, or not this checkout");
      const { missing, results, exitCode, stderr, harm } = await attack(isolation, how, user);
      skip(missing !== undefined, `this machine does not have it: ${missing}`);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      expect(results.length).toBeGreaterThan(50);
      const excuses = notHeld(isolation, user.user);
      const isExcused = (name: string): boolean =>
        // Then its parent is the tool, which has nothing that the program has not.
        (how === "launched" && name.startsWith("server: ")) ||
        excuses.some((one) => (typeof one === "string" ? one === name : one.test(name)));
      expect(results.filter(([name, got]) => got !== null && !isExcused(name))).toEqual([]);
      // Nor did anything happen that the code did not see.
      if (isolation === "process") return;
      expect(harm).toEqual([]);
    },
  );
});
