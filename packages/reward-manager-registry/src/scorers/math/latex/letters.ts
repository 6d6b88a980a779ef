/**
 * Letters with accents, and letters of mathematical alphabets.
 */

const accents: Readonly<Record<string, string>> = {
  "'": "\u0301",
  "`": "\u0300",
  '"': "\u0308",
  c: "\u0327",
  "^": "\u0302",
  "~": "\u0303",
  H: "\u030B",
  k: "\u0328",
  "=": "\u0304",
  b: "\u0331",
  ".": "\u0307",
  d: "\u0323",
  r: "\u030A",
  u: "\u0306",
  v: "\u030C",
  vec: "\u20D7",
  dot: "\u0307",
  hat: "\u0302",
  check: "\u030C",
  breve: "\u0306",
  acute: "\u0301",
  grave: "\u0300",
  tilde: "\u0303",
  bar: "\u0305",
  ddot: "\u0308",
  not: "\u0338",
};

export function isAccent(command: string): boolean {
  return Object.hasOwn(accents, command);
}

/** Puts the accent on each character. */
export function accented(text: string, command: string): string {
  const accent = accents[command] ?? "";
  return Array.from(text, (one) => ((dotless[one] ?? one) + accent).normalize("NFC")).join("");
}

const dotless: Readonly<Record<string, string>> = { ı: "i", ȷ: "j" };

/**
 * The first code points of the alphabets of `\mathbf` and similar commands; some of their letters
 * are elsewhere.
 */
const alphabets: Readonly<Record<string, { readonly upper: number; readonly lower: number }>> = {
  mathbf: { upper: 0x1d400, lower: 0x1d41a },
  mathit: { upper: 0x1d434, lower: 0x1d44e },
  mathcal: { upper: 0x1d49c, lower: 0x1d4b6 },
  mathscr: { upper: 0x1d49c, lower: 0x1d4b6 },
  mathfrak: { upper: 0x1d504, lower: 0x1d51e },
  mathbb: { upper: 0x1d538, lower: 0x1d552 },
  mathsf: { upper: 0x1d5a0, lower: 0x1d5ba },
  mathtt: { upper: 0x1d670, lower: 0x1d68a },
};
const elsewhere: Readonly<Record<string, string>> = {
  mathit: "hℎ",
  mathcal: "BℬEℰFℱHℋIℐLℒMℳRℛeℯgℊoℴ",
  mathscr: "BℬEℰFℱHℋIℐLℒMℳRℛeℯgℊoℴ",
  mathfrak: "CℭHℌIℑRℜZℨ",
  mathbb: "CℂHℍNℕPℙQℚRℝZℤ",
};

export function isAlphabet(command: string): boolean {
  return Object.hasOwn(alphabets, command);
}

/** Replaces ASCII letters by those of an alphabet; other characters stay. */
export function inAlphabet(name: string, text: string): string {
  const { upper, lower } = alphabets[name] ?? { upper: 0, lower: 0 };
  const others = elsewhere[name] ?? "";
  return Array.from(text, (character) => {
    const at = /^[A-Za-z]$/.test(character) ? others.indexOf(character) : -1;
    if (at >= 0) return others[at + 1] ?? "";
    const code = character.charCodeAt(0);
    if (/^[A-Z]$/.test(character)) return String.fromCodePoint(upper + code - 65);
    return /^[a-z]$/.test(character) ? String.fromCodePoint(lower + code - 97) : character;
  }).join("");
}
