/** A user without a home folder, as where a number of a user is all that a container knows. */
import { expect, test, vi } from "vitest";

vi.mock("node:os", async (original) => ({
  ...(await original<object>()),
  homedir: (): string => {
    throw new Error("A system error occurred: uv_os_homedir returned ENOENT");
  },
}));

test("loads all, and misses the folder where it is needed", async () => {
  const { defaultCredentialFolder, findCredentials } = await import("../src/cluster.ts");
  expect(findCredentials(undefined, true)).toBeUndefined();
  expect(defaultCredentialFolder).toThrow(
    "the folder of certificates has no place: its default is ~/.rayling/tls, and this user has no home folder (set HOME, or name another place)",
  );
});
