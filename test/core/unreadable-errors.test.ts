import * as ray from "rayling";
import { afterAll, beforeAll, expect, test } from "vitest";
import { side, Touchy, TouchyError } from "../fixtures/touchy.ts";

beforeAll(async () => {
  side.isDriver = true;
  await ray.init({ numCpus: 1, prewarm: 0 });
});
afterAll(() => ray.shutdown());

async function rejectionOf(ref: ray.ObjectRef): Promise<Error> {
  try {
    await ray.get(ref);
  } catch (error) {
    return error as Error;
  }
  return expect.fail("it did not fail");
}

test("an error whose class cannot say its name here is an instance of it, with the name that it had", async () => {
  const error = await rejectionOf(Touchy.remote().prototypeThrows.remote());
  expect(error).toBeInstanceOf(TouchyError);
  expect(error).toBeInstanceOf(ray.TaskError);
  expect(error).toMatchObject({ name: "TouchyError", message: "do not touch" });
  expect(error.stack).toContain("touchy.ts");
});

test("so is a cause, and it does not hide the error that it caused", async () => {
  const error = await rejectionOf(Touchy.remote().inside.remote());
  expect(error.message).toBe("outside");
  expect(error.cause).toBeInstanceOf(TouchyError);
  expect(String(error.cause)).toBe("TouchyError: inside");
});

test("a field that cannot be read here does not hide the error that has it", async () => {
  const error = await rejectionOf(Touchy.remote().fieldCannotBeRead.remote());
  expect(error).toBeInstanceOf(RangeError);
  expect(error).toMatchObject({
    message: "has a sealed field",
    code: "SEALED",
    sealed: "<a value that cannot be read here: Error: the seal is broken>",
    deep: [{ sealed: "<a value that cannot be read here: Error: the seal is broken>" }],
  });
  expect(error.stack).toContain("touchy.ts");
});

test("a result that cannot be read here fails its own call, with what went wrong", async () => {
  const error = await rejectionOf(Touchy.remote().result.remote());
  expect(error).toBeInstanceOf(ray.RaySystemError);
  expect((error.cause as Error).message).toBe("the seal is broken");
});
