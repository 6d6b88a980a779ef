/** What a formula cannot be worked out from. Code "TRAINER_INPUT". */
export class TrainerInputError extends Error {
  override readonly name = "TrainerInputError";
  readonly code = "TRAINER_INPUT";
  /** Which of the inputs or settings. */
  readonly input: string;

  constructor(input: string, message: string) {
    super(message);
    this.input = input;
  }
}
