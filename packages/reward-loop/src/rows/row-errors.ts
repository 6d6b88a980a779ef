/** How errors of a row are made, and the options that name its columns. */

export interface RowWords {
  /** Makes the error of a reason, with the place of the row. */
  readonly bad: (reason: string) => Error;
  /** The name of the option that says where the prompt is, as "--prompt-key". */
  readonly promptOption: string;
  readonly responseOption: string;
  readonly truthOption: string;
}
