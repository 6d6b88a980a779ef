/**
 * LaTeX as the plain text that pylatexenc 2.10 makes of it (`LatexNodes2Text().latex_to_text`), which prm800k's grader reads: `\frac{1}{2}` is "1/2", `\sqrt{3}` "√(3)".
 *
 * Commands of answers, not of articles: fractions, roots, letters, relations, spaces, texts, accents and matrices. A command that is not known is dropped and
 * what is in its braces stays, as there. Read once from left to right.
 */

/** What commands stand for that have no arguments. */
const symbols: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      "alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ mu μ nu ν xi ξ pi π varpi ϖ rho ρ",
      "sigma σ tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω",
      "infty ∞ cdot · times × div ÷ pm ± mp ∓ le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ approx ≈ equiv ≡ sim ∼ cup ∪ cap ∩ in ∈ notin ∉ subset ⊂ subseteq ⊆",
      "to → rightarrow → leftarrow ← Rightarrow ⇒ Leftarrow ⇐ iff ⟺ ldots … dots … cdots ⋯ vdots ⋮ circ ∘ angle ∠ emptyset ∅ varnothing ∅ mid | prime '",
      "lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ langle ⟨ rangle ⟩ partial ∂ nabla ∇ forall ∀ exists ∃ perp ⊥ parallel ∥ ell ℓ int ∫ sum ∑ prod ∏",
      "sin sin cos cos tan tan cot cot sec sec csc csc arcsin arcsin arccos arccos arctan arctan sinh sinh cosh cosh tanh tanh ln ln log log exp exp lim lim",
      "min min max max sup sup inf inf det det dim dim ker ker deg deg arg arg",
    ]
      .flatMap((line) => pairs(line.split(" ")))
      .map(([name, text]) => [name, text]),
  ),
  quad: "  ",
  qquad: "    ",
  ",": " ",
  ";": " ",
  ":": " ",
  ">": " ",
  " ": " ",
  "!": "",
  "\\": "\n",
  "%": "%",
  $: "$",
  "#": "#",
  "&": "&",
  _: "_",
  "{": "{",
  "}": "}",
  "|": "‖",
};

const accents: Readonly<Record<string, string>> = {
  hat: "\u0302",
  bar: "\u0305",
  vec: "\u20D7",
  tilde: "\u0303",
  dot: "\u0307",
  ddot: "\u0308",
};

/** Where the alphabets of `\mathbf` and the like begin; letters of theirs that stand elsewhere. */
const alphabets: Readonly<Record<string, { readonly upper: number; readonly lower: number }>> = {
  mathbf: { upper: 0x1d400, lower: 0x1d41a },
  mathit: { upper: 0x1d434, lower: 0x1d44e },
  mathbb: { upper: 0x1d538, lower: 0x1d552 },
  mathcal: { upper: 0x1d49c, lower: 0x1d4b6 },
};
const elsewhere: Readonly<Record<string, string>> = {
  mathitℎ: "ℎ",
  mathith: "ℎ",
  mathbbC: "ℂ",
  mathbbH: "ℍ",
  mathbbN: "ℕ",
  mathbbP: "ℙ",
  mathbbQ: "ℚ",
  mathbbR: "ℝ",
  mathbbZ: "ℤ",
};

const matrices: ReadonlySet<string> = new Set([
  "array",
  "matrix",
  "pmatrix",
  "bmatrix",
  "vmatrix",
  "Bmatrix",
  "smallmatrix",
]);

/** Groups in groups, far beyond any answer. */
const maxDepth = 100;

/** The text; what cannot be read as LaTeX is left out. Undefined for what is nested too deeply, with which pylatexenc ends in an error. */
export function latexToText(latex: string): string | undefined {
  try {
    return new Reader(latex).text(undefined);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

class Reader {
  readonly #latex: string;
  #at = 0;
  #depth = 0;

  constructor(latex: string) {
    this.#latex = latex;
  }

  /** Up to the end of the group or environment that was begun, or to the end. @throws SyntaxError when it is too deep */
  text(end: "}" | "environment" | undefined): string {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new SyntaxError("too deep");
    const text = this.#rest(end);
    this.#depth -= 1;
    return text;
  }

  #rest(end: "}" | "environment" | undefined): string {
    let text = "";
    while (this.#at < this.#latex.length) {
      const character = this.#latex[this.#at] as string;
      if (character === "}") {
        this.#at += 1;
        if (end === "}") return text;
      } else if (character === "\\") {
        const name = this.#command();
        if (name === "end" && end === "environment") {
          this.#argument();
          return text;
        }
        text += this.#meaning(name);
      } else if (character === "%") {
        const newline = this.#latex.indexOf("\n", this.#at);
        this.#at = newline < 0 ? this.#latex.length : newline + 1;
      } else {
        text += this.#plain(character, end);
      }
    }
    return text;
  }

  #plain(character: string, end: "}" | "environment" | undefined): string {
    if (character === "{") {
      this.#at += 1;
      return this.text("}");
    }
    this.#at += 1;
    if (character === "~") return " ";
    if (character === "$") return "";
    if (character === "&") return end === "environment" ? "&" : "   ";
    return character;
  }

  /** The name of the command that begins here; spaces behind a word are part of it. */
  #command(): string {
    const [whole = "\\", name = ""] =
      /^\\([a-zA-Z]+\*?)[ \t]*\n?[ \t]*/.exec(this.#latex.slice(this.#at, this.#at + 64)) ?? [];
    if (name !== "") {
      this.#at += whole.length;
      return name.replace("*", "");
    }
    const symbol = this.#latex[this.#at + 1] ?? "";
    this.#at += 1 + symbol.length;
    return symbol;
  }

  #meaning(name: string): string {
    const symbol = Object.hasOwn(symbols, name) ? symbols[name] : undefined;
    if (symbol !== undefined) return symbol;
    const accent = Object.hasOwn(accents, name) ? accents[name] : undefined;
    if (accent !== undefined) return (this.#argument() ?? "") + accent;
    switch (name) {
      case "frac":
      case "cfrac":
        return this.#fraction();
      case "sqrt":
        this.#option();
        return `√(${this.#argument() ?? "%(2)s"})`;
      case "begin":
        return this.#environment(this.#argument() ?? "");
      case "mbox":
        this.#argument();
        return "";
      case "mathbf":
      case "mathit":
      case "mathbb":
      case "mathcal":
        return inAlphabet(name, this.#argument() ?? "");
      default:
        return "";
    }
  }

  #fraction(): string {
    const above = this.#argument();
    const below = this.#argument();
    // So pylatexenc says it when one is missing.
    return above === undefined || below === undefined ? `%s/%s${above ?? ""}` : `${above}/${below}`;
  }

  /** The next group, character or command; undefined where there is none. */
  #argument(): string | undefined {
    this.#skipSpaces();
    const character = this.#latex[this.#at];
    if (character === undefined || character === "}") return undefined;
    if (character === "\\") return this.#nested();
    if (character === "{") {
      this.#at += 1;
      return this.text("}");
    }
    const whole = String.fromCodePoint(this.#latex.codePointAt(this.#at) as number);
    this.#at += whole.length;
    return whole;
  }

  /** A command that is an argument, as in "\\sqrt\\sqrt2". */
  #nested(): string {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new SyntaxError("too deep");
    const text = this.#meaning(this.#command());
    this.#depth -= 1;
    return text;
  }

  #option(): void {
    this.#skipSpaces();
    if (this.#latex[this.#at] !== "[") return;
    const end = this.#latex.indexOf("]", this.#at);
    if (end >= 0) this.#at = end + 1;
  }

  #environment(name: string): string {
    const inside = this.text("environment");
    if (!matrices.has(name)) return inside;
    const rows = inside
      .split("\n")
      .map((row) =>
        row
          .split("&")
          .map((cell) => cell.trim())
          .join(" "),
      )
      .filter((row) => row !== "");
    return `[ ${rows.join("; ")} ]`;
  }

  #skipSpaces(): void {
    while (/\s/.test(this.#latex[this.#at] ?? "")) this.#at += 1;
  }
}

function inAlphabet(name: string, text: string): string {
  const { upper, lower } = alphabets[name] ?? { upper: 0, lower: 0 };
  return Array.from(text)
    .map((character) => {
      const other = elsewhere[name + character];
      if (other !== undefined) return other;
      const code = character.charCodeAt(0);
      if (/^[A-Z]$/.test(character)) return String.fromCodePoint(upper + code - 65);
      return /^[a-z]$/.test(character) ? String.fromCodePoint(lower + code - 97) : character;
    })
    .join("");
}

function pairs(words: readonly string[]): [string, string][] {
  return words.flatMap((word, index) =>
    index % 2 === 0 ? [[word, words[index + 1] ?? ""] as [string, string]] : [],
  );
}
