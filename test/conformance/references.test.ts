import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { collect } from "../fixtures/collect.ts";
import { failing, Holder } from "../fixtures/conformance.ts";
import { initIn, withinAndApart, ownHost } from "../fixtures/isolations.ts";

describe.each(withinAndApart)("references: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_reference_counting_2::test_recursively_nest_ids: a ref inside a ref inside a ref keeps its value for whoever has the outermost", async () => {
    const holder = Holder.remote();
    const other = Holder.remote();
    let nested: ray.ObjectRef = ray.put("innermost");
    for (let depth = 0; depth < 5; depth++) nested = ray.put([nested]);
    await ray.get(holder.hold.remote([nested]));
    nested = ray.put(0);
    await collect();
    expect(await ray.get(holder.readHeld.remote())).toBe("innermost");
    // Handed on by a borrower, it outlives that one.
    await ray.get(holder.handOn.remote(other));
    await ray.kill(holder);
    await collect();
    expect(await ray.get(other.readHeld.remote())).toBe("innermost");
  });

  test("test_reference_counting_2::test_borrowed_id_failure: a borrower that dies takes nothing with it, an owner takes what it owned", async () => {
    const ref = ray.put("the driver's");
    const borrower = Holder.remote();
    await ray.get(borrower.hold.remote([ref]));
    await ray.kill(borrower);
    expect(await ray.get(ref)).toBe("the driver's");
    const owner = Holder.options(ownHost(isolation)).remote();
    const owned = await ray.get(owner.put.remote("the owner's"));
    await ray.kill(owner);
    await expect(ray.get(owned)).rejects.toThrow(ray.OwnerDiedError);
  });

  test("test_asyncio::test_async_obj_unhandled_errors: an error whose ref was dropped is told once, one that was awaited is not", async () => {
    const told: string[] = [];
    const note = (warning: Error): void => void told.push(warning.message);
    process.on("warning", note);
    await ray.get(failing.remote("awaited")).catch(() => undefined);
    await ray.wait([failing.remote("dropped")]);
    while (!told.some((text) => text.includes("dropped"))) await collect();
    await collect();
    process.off("warning", note);
    expect(told.filter((text) => text.includes("dropped"))).toHaveLength(1);
    expect(told.filter((text) => text.includes("awaited"))).toEqual([]);
  });
});
