/**
 * References in the variables of a `runtimeEnv`: `${NAME}` is the text of that variable, as in Ray.
 *
 * Variables refer to those before them and to those around them: the settings of the code that
 * starts a host, then those of the session, then the environment of the machine it starts on. That
 * one is known last, so references to it stay until then. Each text is filled in once by each of
 * these; what is filled in cannot change the meaning of what was there before.
 */
type Variables = Readonly<Record<string, string>>;

const reference = /\$\{(\w+)\}/g;

/** Fills in the references to variables that come before. */
export function inOrder(env: Variables): Variables {
  const known = new Map<string, string>();
  for (const [name, text] of Object.entries(env)) {
    known.set(
      name,
      filledIn(text, (one) => known.get(one)),
    );
  }
  return Object.fromEntries(known);
}

/** Merges variables over others, to which they may refer. */
export function mergedVariables(outer: Variables, own: Variables): Variables {
  return { ...outer, ...eachFilledIn(own, (name) => valueIn(outer, name)) };
}

/** Adds variables to the environment around them; a reference that nothing answers is empty. */
export function inEnvironment(around: NodeJS.ProcessEnv, own: Variables): NodeJS.ProcessEnv {
  return { ...around, ...eachFilledIn(own, (name) => valueIn(around, name) ?? "") };
}

/** Whether a text depends on other variables. */
export function hasReferences(text: string): boolean {
  return text.search(reference) >= 0;
}

function eachFilledIn(env: Variables, valueOf: (name: string) => string | undefined): Variables {
  return Object.fromEntries(
    Object.entries(env).map(([name, text]) => [name, filledIn(text, valueOf)]),
  );
}

function filledIn(text: string, valueOf: (name: string) => string | undefined): string {
  return text.replaceAll(reference, (whole, name: string) => valueOf(name) ?? whole);
}

function valueIn(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}
