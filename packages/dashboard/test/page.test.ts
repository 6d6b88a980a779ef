/** The page in Chromium: its numbers are those of ray.state, and what it does is done. */
import * as ray from "@rayling/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { chromiumPath } from "../../trainer/test/tracking/browser.ts";
import { Counter, Fragile } from "./fixtures/actors.ts";
import { expectSound, openBrowser, openPage } from "./fixtures/page.ts";
import { servedSession } from "./fixtures/served.ts";

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test("a session can be seen and its actors killed, by the keyboard", async () => {
    const { url } = await servedSession({ numCpus: 4, taskEvents: true });
    const second = Counter.options({ name: "second" }).remote();
    const counters = [
      Counter.options({ name: "first" }).remote(),
      second,
      Counter.options({ name: "third" }).remote(),
    ];
    await ray.get(counters.map((one) => one.say.remote("a line to read")));
    await expect(ray.get(Fragile.remote().leave.remote())).rejects.toThrow("code 7");
    const tooBig = Counter.options({ numCpus: 64 }).remote();
    const watched = await openPage(url);
    const { page, oddities } = watched;

    expect(new URL(page.url()).search).toBe("");
    await expect.poll(() => page.title()).toBe("Overview – rayling");
    const counted = await ray.state.summarizeActors();
    const figure = (name: string): Promise<string | null> =>
      page.locator("dl.facts div", { hasText: name }).locator("dd").textContent();
    await expect
      .poll(() => figure("Actors alive"))
      .toBe(String(counted.byName["Counter"]?.["ALIVE"]));
    expect(await figure("Actors dead")).toBe(String(counted.byName["Fragile"]?.["DEAD"]));
    await page.getByText("needs 64 CPU of 4").waitFor();
    await page.getByRole("log").getByText("a line to read").first().waitFor();
    await expectSound(watched, "overview");

    await page.getByRole("link", { name: "Actors", exact: true }).focus();
    await page.keyboard.press("Enter");
    const rows = page.locator("tbody tr");
    await expect.poll(() => rows.count()).toBe(counted.total);
    await page.getByText("exited with code 7").waitFor();
    const sort = page.getByRole("button", { name: "Name" });
    await sort.focus();
    await page.keyboard.press("Enter");
    await page.locator("th[aria-sort=ascending]").waitFor();
    await page.keyboard.press("Enter");
    const names = (): Promise<string[]> => page.locator("tbody td:nth-child(4)").allTextContents();
    await expect.poll(names).toEqual(["third", "second", "first", "–", "–"]);
    await expectSound(watched, "actors");
    await page.getByLabel("Filter").fill("second");
    await expect.poll(() => rows.count()).toBe(1);

    await rows.getByRole("link").first().press("Enter");
    await page.getByRole("heading", { name: /^Actor actor-/ }).waitFor();
    await page.getByText("Counter.say").waitFor();
    await expectSound(watched, "actor");
    const kill = page.getByRole("button", { name: "Kill …" });
    await kill.press("Enter");
    await page.getByRole("dialog").waitFor();
    await expectSound(watched, "kill");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await ray.get(second.increment.remote())).toBe(1);
    await kill.press("Enter");
    await page.getByRole("button", { name: "Kill it" }).press("Enter");
    await page.getByText("it was killed from the dashboard").waitFor();
    const [killed] = await ray.state.listActors({
      filters: [["name", "=", "second"]],
      detail: true,
    });
    expect(killed).toMatchObject({ state: "DEAD", deathCause: "it was killed from the dashboard" });

    for (const room of ["tasks", "objects", "placementGroups", "workers", "nodes"]) {
      await page.evaluate(`location.hash = "#/${room}"`);
      await page.getByRole("status").waitFor();
      await expectSound(watched, room);
    }
    expect(oddities).toEqual([]);
    await ray.kill(tooBig);
    await ray.shutdown();
    await page.getByText("the session may have ended").waitFor();
  });

  test("many tabs are shown, and what they do is done: those in the background hold no connection", async () => {
    const { url } = await servedSession();
    const actor = Counter.remote();
    await ray.get(actor.increment.remote());
    const [counter] = await ray.state.listActors();
    const context = await (await openBrowser()).newContext();
    onTestFinished(() => context.close());
    // Without windows no tab is ever hidden.
    await context.addInitScript(
      "let isHidden = false; Object.defineProperty(document, 'hidden', { get: () => isHidden }); globalThis.hide = (to) => { isHidden = to; document.dispatchEvent(new Event('visibilitychange')); };",
    );
    const first = await context.newPage();
    await first.clock.install();
    await first.goto(url);
    const address = first.url();
    await first.getByText("Actors alive").waitFor();
    await first.goto(`${address}#/actor/${counter?.actorId}`);
    await first.getByRole("button", { name: "Kill …" }).waitFor();
    await first.evaluate("hide(true)");
    // A browser has six connections to a server.
    for (let tab = 0; tab < 6; tab++) {
      const other = await context.newPage();
      await other.goto(address);
      await other.getByText("Actors alive").waitFor();
      await other.evaluate("hide(true)");
    }
    await first.route("**/api/kill", () => undefined);
    await first.getByRole("button", { name: "Kill …" }).click();
    await first.getByRole("button", { name: "Kill it" }).click();
    await first.clock.fastForward(20_000);
    await first.getByRole("dialog").getByText("has not answered for 20 s").waitFor();
    await first.unroute("**/api/kill");
    const answered = first.waitForResponse("**/api/kill");
    await first.getByRole("button", { name: "Kill it" }).click();
    await answered;
    await expect(ray.get(actor.increment.remote())).rejects.toThrow("killed from the dashboard");
    await first.evaluate("hide(false)");
    await first.getByText("it was killed from the dashboard").waitFor();
  });
});
