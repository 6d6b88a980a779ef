/**
 * How big results were made, so that they can be made again when the process that kept them is
 * gone: Ray's lineage.
 *
 * A recipe holds the call and its ingredients: small values themselves, others by their own
 * recipes, so that it keeps no big value alive. It lives as long as the result, or a result made
 * from it. All recipes together take at most `maxBytes`; then the older half is forgotten.
 */
import { type Encoded, sizeOf } from "../../protocol/codec.ts";
import type { FailureData } from "../../protocol/failure.ts";
import {
  ObjectLostError,
  ObjectReconstructionFailedError,
  type ReconstructionFailure,
} from "../../shared/errors.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import { AnyArguments, type CallArguments } from "../calls/call-arguments.ts";
import { Call } from "../calls/call.ts";
import { inlineBytes } from "./results-at-their-host.ts";

export interface LineageLink {
  createEntry(label: string): ObjectEntry;
  /** Keeps what a task that ran again has made. */
  adopt(entry: ObjectEntry, made: ObjectEntry): Promise<void>;
  describe(error: Error): FailureData;
}

/** Ray's figure. */
export const maxLineageBytes: number = 1024 ** 3;

/** Rough memory of a recipe itself: a chain of a million small calls is not free. */
const recipeBytes = 1024;

interface Ingredient {
  readonly entry: WeakRef<ObjectEntry>;
  readonly label: string;
  /** If it is small. */
  readonly value: Encoded | undefined;
  readonly recipe: Recipe | undefined;
}

/** A call without the entries of its arguments, which would keep their values alive. */
interface RecipeCall extends Pick<Call, "owner" | "plan" | "parent"> {
  readonly args: Pick<CallArguments, "values" | "signals">;
}

interface Recipe {
  /** Undefined when it was forgotten. */
  call: RecipeCall | undefined;
  ingredients: readonly Ingredient[];
  attemptsLeft: number;
  readonly bytes: number;
}

interface Noted {
  readonly recipe: WeakRef<Recipe>;
  readonly bytes: number;
}

export class Lineage {
  readonly #link: LineageLink;
  readonly #maxBytes: number;
  readonly #recipes: WeakMap<ObjectEntry, Recipe> = new WeakMap();
  /** Oldest first. */
  readonly #noted: Set<Noted> = new Set();
  readonly #gone: FinalizationRegistry<Noted> = new FinalizationRegistry((noted) => {
    if (this.#noted.delete(noted)) this.#bytes -= noted.bytes;
  });
  #bytes = 0;

  constructor(link: LineageLink, maxBytes: number = maxLineageBytes) {
    this.#link = link;
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `call` has just made the value of `entry`. */
  note(entry: ObjectEntry, call: Call): void {
    const { owner, plan, parent, retriesLeft } = call;
    const { dependencies, signals } = call.args;
    const values = call.args.keep();
    const ingredients = dependencies.map((dependency) => this.#ingredient(dependency));
    const inside = ingredients.flatMap(({ value }) => value ?? []);
    const bytes = [values, ...inside].reduce((sum, value) => sum + sizeOf(value), recipeBytes);
    const recipe: Recipe = {
      call: { owner, plan, parent, args: { values, signals } },
      ingredients,
      attemptsLeft: retriesLeft,
      bytes,
    };
    const noted: Noted = { recipe: new WeakRef(recipe), bytes };
    this.#recipes.set(entry, recipe);
    this.#noted.add(noted);
    this.#gone.register(recipe, noted);
    this.#bytes += bytes;
    if (this.#bytes > this.#maxBytes) this.#forgetHalf();
  }

  /** Whether the call that made the value of `entry` may run again. */
  allows(entry: ObjectEntry): boolean {
    const recipe = this.#recipes.get(entry);
    return recipe?.call !== undefined && recipe.attemptsLeft !== 0;
  }

  /**
   * Makes the value of `entry` again, with its ingredients. Resolves when it is there, or has
   * failed.
   */
  async remake(entry: ObjectEntry, loss: Error): Promise<void> {
    await this.#remake(entry, this.#recipes.get(entry), loss);
  }

  async #remake(entry: ObjectEntry, recipe: Recipe | undefined, loss: Error): Promise<void> {
    const refuse = (reason: ReconstructionFailure): void => {
      const { id, label } = entry;
      const error = new ObjectReconstructionFailedError(id, label, reason, loss);
      entry.lost(this.#link.describe(error));
    };
    if (recipe === undefined) return refuse("lineage-disabled");
    const { call } = recipe;
    if (call === undefined) return refuse("lineage-evicted");
    if (recipe.attemptsLeft === 0) {
      return refuse(call.plan.maxRetries === 0 ? "retries-disabled" : "max-attempts-exceeded");
    }
    recipe.attemptsLeft -= 1;
    const dependencies: ObjectEntry[] = [];
    for (const ingredient of recipe.ingredients) {
      const dependency = this.#entryFor(ingredient);
      if (dependency === undefined) {
        return refuse(ingredient.label === "put" ? "put" : "reference-not-found");
      }
      dependencies.push(dependency);
    }
    const { owner, plan, parent } = call;
    const again = this.#link.createEntry(entry.label);
    const args = new AnyArguments(call.args.values, dependencies, call.args.signals);
    const attempt = new Call(owner, plan, args, again);
    attempt.parent = parent;
    attempt.retriesLeft = recipe.attemptsLeft;
    attempt.isAgain = true;
    attempt.mayHaveRun = true;
    this.#recipes.set(entry, recipe);
    owner.submit(attempt);
    await ready(again);
    recipe.attemptsLeft = attempt.retriesLeft;
    await this.#link.adopt(entry, again);
  }

  #ingredient(entry: ObjectEntry): Ingredient {
    const { outcome } = entry;
    const value = outcome?.ok === true ? outcome.value : undefined;
    const isSmall = value !== undefined && sizeOf(value) <= inlineBytes;
    return {
      entry: new WeakRef(entry),
      label: entry.label,
      value: isSmall ? value : undefined,
      recipe: this.#recipes.get(entry),
    };
  }

  /** The ingredient itself, a copy of it, or one that is made when it is looked at. */
  #entryFor({ entry, label, value, recipe }: Ingredient): ObjectEntry | undefined {
    const living = entry.deref();
    if (living !== undefined) return living;
    const made = this.#link.createEntry(label);
    if (value !== undefined) {
      made.resolve(value);
      return made;
    }
    if (recipe === undefined) return undefined;
    const loss = new ObjectLostError(made.id, `it was let go, and is needed again`);
    let bringing: Promise<void> | undefined;
    made.resolveAway({
      isLost: () => true,
      bringing: "it was lost, and the call that made it runs again",
      bring: (asked) => (bringing ??= this.#remake(asked, recipe, loss)),
    });
    return made;
  }

  #forgetHalf(): void {
    for (const noted of this.#noted) {
      if (this.#bytes <= this.#maxBytes / 2) return;
      this.#noted.delete(noted);
      this.#bytes -= noted.bytes;
      const recipe = noted.recipe.deref();
      if (recipe === undefined) continue;
      recipe.call = undefined;
      recipe.ingredients = [];
    }
  }
}

function ready(entry: ObjectEntry): Promise<void> {
  return new Promise((resolve) => entry.watch(() => resolve()));
}
