/**
 * Whether answers of a validation are drawn. verl's agent loop asks for the temperature alone, and
 * draws wherever it is above 0; here `do_sample=false` takes the likeliest token all the same.
 */
export function drawsValidation(validation: {
  readonly doSample: boolean | null;
  readonly temperature: number;
}): boolean {
  return validation.doSample !== false && validation.temperature > 0;
}
