/**
 * Makes a submitted sample with the promise of its outcome, out of as few objects as V8 allows:
 * many samples wait at once. Samples that follow each other in one lane share their terms, and one
 * function takes the `resolve` of all promises.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { present } from "@rayling/reward-manager-registry/values";
import type { SampleOutcome } from "../outcome.ts";
import type { AskedFor, ScoreEnds } from "./reward-source.ts";
import { SubmittedSample } from "./submitted-sample.ts";
import type { Resolve, SampleOwner, SampleTerms } from "./submitted-sample.ts";

export class Submissions {
  readonly #owner: SampleOwner;
  #terms: SampleTerms | undefined;
  #promise: Promise<SampleOutcome> | undefined;
  /** Resolves `#promise`. */
  #resolve: Resolve | undefined;

  constructor(owner: SampleOwner) {
    this.#owner = owner;
  }

  submit(
    sample: RewardSample,
    lane: string,
    asked: AskedFor | undefined,
    ends: ScoreEnds | undefined,
  ): SubmittedSample {
    // Not `withResolvers`, whose object and second function would wait with each sample.
    this.#promise = new Promise(this.#keepResolve);
    const resolve = present(this.#resolve, "the function that resolves a promise");
    return new SubmittedSample(sample, this.#termsOf(lane, ends), asked, resolve);
  }

  /** Returns the promise of the sample that was submitted last, once. */
  takePromise(): Promise<SampleOutcome> {
    const promise = present(this.#promise, "the promise of the last sample");
    this.#promise = undefined;
    this.#resolve = undefined;
    return promise;
  }

  readonly #keepResolve = (resolve: Resolve): void => {
    this.#resolve = resolve;
  };

  #termsOf(lane: string, ends: ScoreEnds | undefined): SampleTerms {
    if (this.#terms?.lane !== lane || this.#terms.ends !== ends) {
      this.#terms = { lane, ends, owner: this.#owner };
    }
    return this.#terms;
  }
}
