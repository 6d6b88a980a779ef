/** A score function for servers of scores. */
export function computeScore({ solutionStr }: { readonly solutionStr: string }): number {
  return solutionStr.length;
}
