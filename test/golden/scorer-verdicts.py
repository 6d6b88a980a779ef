"""
Makes scorer-verdicts.jsonl: what verl's own scorers say of pairs of an answer and a ground truth.

    python scorer-verdicts.py VERL_CHECKOUT > scorer-verdicts.jsonl

VERL_CHECKOUT holds verl 0.10.0.dev (commit 1dda039b9c). Made with Python 3.11, sympy 1.14.0, pylatexenc 2.10, mathruler 0.1.0 and
antlr4-python3-runtime 4.11.1. A second argument is another seed, a third how many pairs.

One line per pair: [verdicts, answer, truth]. The verdicts are one digit per scorer, 1 for right, in the order of SCORERS. An
answer is given to each scorer in the form that it looks for.

verl stops sympy after 10 s by another process. Here a signal does it, for speed; nothing else of verl is replaced.
"""

import functools
import itertools
import json
import random
import signal
import sys
import types
import warnings

SCORERS = ["math_reward", "math_dapo", "prime_math", "geo3k", "gsm8k", "search_r1"]


def with_time_limit(seconds, use_signals=False):
    def decorator(function):
        @functools.wraps(function)
        def limited(*args, **kwargs):
            def stop(*_):
                raise TimeoutError(f"longer than {seconds} s")

            before = signal.signal(signal.SIGALRM, stop)
            signal.alarm(seconds)
            try:
                return function(*args, **kwargs)
            finally:
                signal.alarm(0)
                signal.signal(signal.SIGALRM, before)

        return limited

    return decorator


def load_scorers(checkout):
    """Only the modules of the scorers: verl itself would import torch."""
    for name in ["verl", "verl.utils", "verl.utils.reward_score"]:
        module = types.ModuleType(name)
        module.__path__ = [f"{checkout}/{name.replace('.', '/')}"]
        sys.modules[name] = module
    limits = types.ModuleType("verl.utils.py_functional")
    limits.timeout_limit = with_time_limit
    sys.modules["verl.utils.py_functional"] = limits
    from verl.utils.reward_score import geo3k, gsm8k, math_dapo, math_reward, prime_math, search_r1_like_qa_em

    # mathruler has no limit; an answer that keeps sympy busy for ever must not keep us.
    return [
        lambda answer, truth: math_reward.compute_score(boxed(answer), truth) == 1,
        lambda answer, truth: math_dapo.compute_score(f"Answer: {answer}", truth)["acc"],
        lambda answer, truth: prime_math.compute_score(boxed(answer), truth)[0],
        lambda answer, truth: with_time_limit(20)(geo3k.compute_score)(boxed(answer), truth) > 0.5,
        lambda answer, truth: gsm8k.compute_score(f"#### {answer}", truth) == 1,
        lambda answer, truth: search_r1_like_qa_em.compute_score(f"<answer>{answer}</answer>", {"target": truth}) == 1,
    ]


def boxed(answer):
    return f"\\boxed{{{answer}}}"


# --- answers -------------------------------------------------------------------------------------

LETTERS = ["x", "y", "a", "b", "c", "n", "r", "t", "k", "m"]


def powers(r):
    """Products of letters, with powers, factorials and primes."""
    a, b = r.sample(LETTERS, 2)
    n = r.choice([2, 3, 4, 5, 10, 12])
    p = r.choice([2, 3, 4, 9])
    groups = [
        [f"{a}{b}^{p}", f"{a}*{b}^{p}", f"{b}^{p}{a}", f"{a} {b}^{p}", f"{a} \\cdot {b}^{p}", f"{a}\\times {b}^{p}", f"{b}^{p} \\cdot {a}", f"{a}({b})^{p}", f"({a}){b}^{p}", f"{a}{b}**{p}", f"{a}{b}^{{{p}}}"],
        [f"({a}{b})^{p}", f"{a}^{p}{b}^{p}", f"{b}^{p}{a}^{p}", f"{a}^{p}*{b}^{p}", f"({b}{a})^{p}", f"({a}*{b})^{p}", f"{a}{b}^{p}"],
        [f"{a}{b}!", f"({a}{b})!", f"{a}({b}!)", f"{b}!{a}", f"{a}*{b}!", f"{a} {b}!", f"({b}{a})!", f"{n}{a}!", f"{a}!{b}!"],
        [f"{a}{b}'", f"{a}'{b}", f"{a}{b}^\\prime", f"({a}{b})'", f"{a}*{b}'", f"{b}'{a}", f"{a}{b}''"],
        [f"{a}{b}{b}", f"{b}{a}{b}", f"{a}{b}^2", f"{a}{b}*{b}", f"{b}^2{a}", f"{b}*{b}{a}"],
        [f"{a}{n}{b}", f"{n}{a}{b}", f"{n}{b}{a}", f"{a}*{n}*{b}", f"{a} {n}{b}", f"{a}{b}{n}"],
        [f"{a}{n}^{p}", f"{n}^{p}{a}", f"{a}*{n**p}", f"{n**p}{a}", f"({a}{n})^{p}", f"{a}^{p}*{n}"],
        [f"{a}^{p}/{b}", f"{a}/{b}^{p}", f"{a}^{p}*{b}^-1", f"{b}^-1{a}^{p}", f"({a}/{b})^{p}", f"1/{b}*{a}^{p}"],
        [f"1/{a}{b}", f"1/({a}{b})", f"{b}/{a}", f"1/{a}*{b}", f"1/{b}/{a}", f"{a}^-1{b}", f"({a}{b})^-1", f"{a}^-1{b}^-1"],
        [f"{a}_{p}{b}", f"{b}{a}_{p}", f"{a}_{{{p}}}", f"{a}_{p}", f"{p}{a}_1", f"{a}_1*{p}", f"{a}_1{p}"],
        [f"{a}{b}^{b}", f"{b}^{b}{a}", f"{p}^{a}{b}", f"{b}{p}^{a}", f"{a}^{p}^{p}", f"{p}^{a}*{b}", f"({p}^{a}){b}", f"{p}^({a}{b})"],
    ]
    every = [form for group in groups for form in group]
    forms = r.choice(groups) if r.random() < 0.85 else every
    lead = r.choice(["", "", f"{n}", f"-{n}", "-", f"{n}*", f"{n} \\cdot ", f"\\frac{{1}}{{{n}}}", f"{n}/", "0.5"])
    same = r.random() < 0.7
    other = lead if same else r.choice(["", f"{n}", f"{n + 1}", "-", f"{n}."])
    return lead + r.choice(forms), other + r.choice(forms)


def sums(r):
    a, b = r.sample(LETTERS, 2)
    n, m = r.choice([1, 2, 3, 5, 7]), r.choice([2, 3, 4, 6])
    groups = [
        [f"({a}+{n})^2", f"{a}^2+{2 * n}{a}+{n * n}", f"({a}+{n})({a}+{n})", f"{n * n}+{a}({a}+{2 * n})", f"{a}^2+{n * n}"],
        [f"({a}-{n})({a}+{n})", f"{a}^2-{n * n}", f"-({n}-{a})({n}+{a})", f"{a}^2+{n * n}", f"({a}+{n})({a}-{n})"],
        [f"{m}{a}+{n}{b}", f"{n}{b}+{m}{a}", f"{a}*{m}+{b}*{n}", f"{m}{a}-{n}{b}", f"{m}({a}+{n}{b}/{m})", f"{a}+{a}+{n}{b}+{m - 2}{a}"],
        [f"\\frac{{{a}+{b}}}{{{m}}}", f"({a}+{b})/{m}", f"{a}/{m}+{b}/{m}", f"\\frac{{{a}}}{{{m}}}+\\frac{{{b}}}{{{m}}}", f"{a}+{b}/{m}"],
        [f"\\frac{{{a}}}{{{b}}}", f"{a}/{b}", f"{a}*1/{b}", f"{m}{a}/{m}{b}", f"{m}{a}/({m}{b})", f"\\dfrac{{{a}}}{{{b}}}", f"{b}/{a}"],
        [f"{a}^3-1", f"({a}-1)({a}^2+{a}+1)", f"-1+{a}^3", f"{a}^3-{n}"],
        [f"{a}", f"{a}+0", f"{n}{a}/{n}", f"{a}^2/{a}", f"--{a}", f"+{a}", f"{a}^1", f"{m}{a}-{m - 1}{a}", f"({a})", f"{a}+{b}-{b}"],
        [f"\\frac{{1}}{{{a}}}+\\frac{{1}}{{{b}}}", f"1/{a}+1/{b}", f"({a}+{b})/({a}{b})", f"({a}+{b})/{a}{b}"],
    ]
    group = r.choice(groups)
    return r.choice(group), r.choice(group)


def fractions(r):
    p, q = r.choice([1, 2, 3, 5, 7, 11, 22]), r.choice([2, 3, 4, 6, 7, 8, 9, 12, 16])
    k = r.choice([2, 3, 10])
    forms = [
        f"\\frac{{{p}}}{{{q}}}", f"\\dfrac{{{p}}}{{{q}}}", f"\\tfrac{{{p}}}{{{q}}}", f"\\cfrac{{{p}}}{{{q}}}", f"\\frac{p}{q}", f"\\frac {p} {q}",
        f"\\frac{p}{{{q}}}", f"\\frac{{{p}}}{q}", f"{p}/{q}", f"{p} / {q}", f"({p})/({q})", f"{k * p}/{k * q}", f"{p / q}", f"{p / q:.2f}",
        f"{p / q:.4f}", f"{p / q:.15g}", f"{p / q:.20f}", f"{p / q:.6e}", f"{p // q} {p % q}/{q}", f"{p // q}\\frac{{{p % q}}}{{{q}}}", f"{p // q} \\frac{{{p % q}}}{{{q}}}",
        f"{p // q}+{p % q}/{q}", f"\\left(\\frac{{{p}}}{{{q}}}\\right)", f"-\\frac{{-{p}}}{{{q}}}", f"-{p}/{q}", f"\\frac{{-{p}}}{{{q}}}", f"-\\frac{{{p}}}{{{q}}}",
        f"\\nicefrac{{{p}}}{{{q}}}", f"\\textfrac{{{p}}}{{{q}}}", f"{p}\\div {q}", f"{p}:{q}", f"{p} \\over {q}", f"\\frac{{{p}}}", f"{100 * p / q:g}\\%", f"{100 * p / q:g}%",
        f"\\frac{{{p}.0}}{{{q}}}", f"{p}*{q}^-1", f"1/({q}/{p})", f"\\frac{{{p}x}}{{{q}x}}", f"\\binom{{{p}}}{{{q}}}",
    ]
    return r.choice(forms), r.choice(forms)


def numbers(r):
    n = r.choice([0, 1, 2, 5, 12, 100, 1000, 1234, 12345, 1000000, 1234567, 10**9, 3, 7])
    d = r.choice([0.1, 0.2, 0.3, 0.5, 0.25, 1.5, 2.75, 3.14, 3.14159, 0.333333333333333, 1e-3, 1e5, 6.02e23])
    whole = [
        f"{n}", f"{n}.0", f"{n}.", f"+{n}", f"{n:,}", f"{n:,}".replace(",", "{,}"), f"{n:,}".replace(",", ",\\!"), f"{n:,}".replace(",", "\\,"), f"{n:e}", f"{n:g}", f"0{n}",
        f"{n} ", f"\\${n}", f"${n}$", f"{n}\\%", f"{n}%", f"{n / 100}", f"{n * 100}", f"{n}^1", f"{n}.00", f"({n})", f"{{{n}}}", f"[{n}]", f"{n}x^0", f"{n}_{{10}}", f"{n}_2", f"{n:b}_2",
        f"{n:_}", f"{n + 0.5}", f"{n}.0000001", f"{n}.000000001", f"{n}+1-1", f"{n}*1", f"{n} million", f"{n} billion", f"{n}*10^6", f"{n}000000", f"{n} and {n}", f"{n} or {n}", f"{n}, {n}", f"{n}e0",
        f"x={n}", f"x = {n}", f"{n}=x", f"n!={n}", f"\\text{{{n}}}", f"\\mathrm{{{n}}}", f"\\mathbf{{{n}}}", f"\\boxed{{{n}}}", f"--{n}", f"- {n}", f"-{n}", f"\\approx {n}", f"\\pm {n}", f"{n}!",
    ]
    decimal = [
        f"{d}", f"{d}0", f"{d:.1f}", f"{d + 0.1}", f"0.1+{d}", f"{d}*1", f"{d}/1", f"{d:e}", f"{d * 2}/2", f"1/{1 / d:g}", f".{str(d).split('.')[-1]}", f"0.1*3", f"3/10", f"0.30", f"0.1+0.2", f"{d}x", f"x*{d}", f"x/{1 / d:g}",
        f"{d}x+{d}", f"{d}(x+1)", f"{d}x+0.1x", f"x*({d}+0.1)", f"{d * 2}x/2", f"{int(d * 1000)}/1000", f"{int(d * 1000)}x/1000", f"{d}^2", f"{d * d}", f"{d}\\pi", f"\\pi*{d}", f"sqrt({d})", f"{d}[3]", f"{d}...", f"{d}\\ldots",
    ]
    forms = whole if r.random() < 0.6 else decimal
    return r.choice(forms), r.choice(forms)


def roots(r):
    n, m, k = r.choice([2, 3, 5, 7, 12, 18, 50, 0.5]), r.choice([2, 3, 4, 8, 27]), r.choice([2, 3, 6])
    a = r.choice(LETTERS)
    groups = [
        [f"\\sqrt{{{n}}}", f"\\sqrt {n}", f"\\sqrt{n}", f"sqrt({n})", f"sqrt{n}", f"√{n}", f"√({n})", f"{n}^(1/2)", f"{n}^{{1/2}}", f"{n}^0.5", f"\\sqrt[2]{{{n}}}", f"{float(n) ** 0.5:.15g}", f"{float(n) ** 0.5:.4f}", f"sqrt {n}", f"\\surd {n}"],
        [f"{k}\\sqrt{{{m}}}", f"\\sqrt{{{k * k * m}}}", f"sqrt({k * k * m})", f"{k}*sqrt({m})", f"\\sqrt{{{m}}}\\cdot {k}", f"\\sqrt{{{m}}}{k}", f"{k}\\sqrt{{{m + 1}}}", f"{k} \\sqrt {{ {m} }}", f"{k}\\sqrt{m}", f"\\frac{{{k * m}}}{{\\sqrt{{{m}}}}}"],
        [f"\\frac{{1}}{{\\sqrt{{{m}}}}}", f"\\frac{{\\sqrt{{{m}}}}}{{{m}}}", f"1/sqrt({m})", f"sqrt({m})/{m}", f"sqrt(1/{m})", f"1/\\sqrt{{{m}}}", f"{m}^-0.5", f"\\frac{{1}}{{{m}}}\\sqrt{{{m}}}"],
        [f"\\sqrt[3]{{{m}}}", f"\\sqrt{{{m}}}", f"{m}^{{1/3}}", f"{m}^(1/3)", f"\\sqrt[4]{{{m}}}", f"{round(m ** (1 / 3), 6)}", f"\\sqrt[n]{{{m}}}"],
        [f"{n}+\\sqrt{{{m}}}", f"\\sqrt{{{m}}}+{n}", f"{n}+sqrt({m})", f"{n}-\\sqrt{{{m}}}", f"{n} + \\sqrt {m}", f"\\sqrt{{{m}+{n}}}"],
        [f"\\sqrt{{{a}^2}}", a, f"|{a}|", f"sqrt({a}^2)", f"sqrt({a})^2", f"({a}^2)^0.5", f"abs({a})", f"sqrt({a})*sqrt({a})", f"\\sqrt{{{a}}}\\sqrt{{{a}}}"],
        [f"\\sqrt{{{a}+1}}", f"sqrt({a}+1)", f"sqrt(1+{a})", f"({a}+1)^0.5", f"\\sqrt{{{a}}}+1", f"sqrt({a})+1", f"\\sqrt{{1+{a}}}"],
        ["\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{2}", "sqrt(2)+1", "1/(sqrt(2)-1)", "\\frac{1}{\\sqrt{2}-1}", "sqrt(3+2sqrt(2))", "1/(sqrt2-1)", "\\sqrt{2}+1"],
        ["\\sqrt{2}\\sqrt{3}", "\\sqrt{6}", "sqrt(2)*sqrt(3)", "sqrt(2)sqrt(3)", "\\sqrt2\\sqrt3", "\\sqrt\\sqrt{36}", "sqrt(6)"],
        [f"(1+\\sqrt{{{m}}})^2", f"1+{m}+2\\sqrt{{{m}}}", f"{1 + m}+2sqrt({m})", f"(1+sqrt({m}))(1+sqrt({m}))", f"{1 + m}+\\sqrt{{{4 * m}}}"],
        [f"\\frac{{{k}+\\sqrt{{{m}}}}}{{2}}", f"({k}+sqrt({m}))/2", f"{k}/2+sqrt({m})/2", f"\\frac{{{k}}}{{2}}+\\frac{{\\sqrt{{{m}}}}}{{2}}", f"\\frac{{{k}-\\sqrt{{{m}}}}}{{2}}", f"\\frac{{{k}\\pm\\sqrt{{{m}}}}}{{2}}"],
        ["\\sqrt{-1}", "i", "sqrt(-1)", "1j", "\\mathrm{i}", "-i^3", "\\sqrt{-4}/2", "I"],
    ]
    group = r.choice(groups)
    return r.choice(group), r.choice(group)


def functions(r):
    n, m = r.choice([1, 2, 3, 4, 5, 8, 10]), r.choice([2, 3, 4])
    a = r.choice(LETTERS)
    groups = [
        [f"\\ln {n}", f"\\ln({n})", f"\\ln{{{n}}}", f"ln({n})", f"ln {n}", f"\\log {n}", f"\\log_{{e}}{n}", f"\\ln\\left({n}\\right)", f"ln{n}", f"\\ln {n}^1"],
        [f"\\ln {n ** m}", f"{m}\\ln {n}", f"ln({n ** m})", f"{m}ln({n})", f"ln({n})*{m}", f"\\ln{{{n}^{m}}}", f"ln({n}^{m})", f"ln {n}^{m}", f"ln({n})^{m}", f"ln^{m}({n})", f"\\ln^{m} {n}"],
        [f"\\ln {n}+\\ln {m}", f"\\ln {n * m}", f"ln({n})+ln({m})", f"ln({n * m})", f"ln {n} + ln {m}", f"ln({n})ln({m})", f"\\ln({n}\\cdot{m})", f"ln {n} ln {m}"],
        [f"\\sin {a}", f"sin({a})", f"\\sin({a})", f"sin {a}", f"\\sin{{{a}}}", f"\\cos {a}", f"s*i*n*{a}", f"\\operatorname{{sin}} {a}"],
        ["\\sin^2 x+\\cos^2 x", "1", "sin(x)^2+cos(x)^2", "\\tan x \\cot x"],
        [f"e^{{{n}}}", f"e^{n}", f"exp({n})", f"\\exp({n})", f"e**{n}", f"2.718281828^{n}", f"e^({n})", f"e*e^{n - 1}", f"\\mathrm{{e}}^{n}"],
        [f"{n}!", f"({n})!", f"{n}*({n}-1)!", f"({n}+1)!/({n}+1)", f"{n}!!", f"{n}!!!", f"{a}!", f"{a}({a}-1)!", f"{n}! / 1", f"-{n}!", f"\\Gamma({n + 1})", f"{n} !", f"{n}!{m}!", f"{m}!*{n}!", f"{m}{n}!"],
        [f"|{a}|", f"\\left|{a}\\right|", f"abs({a})", f"\\lvert {a} \\rvert", f"\\mid {a} \\mid", f"\\|{a}\\|", f"|-{a}|"],
        [f"\\lfloor {a} \\rfloor", f"\\left\\lfloor {a} \\right\\rfloor", f"floor({a})", f"\\lceil {a} \\rceil", f"[{a}]"],
        [f"f({a})={a}^2", f"f({a}) = {a}^2", f"{a}^2", f"y={a}^2", f"y = {a}*{a}", f"f={a}^2", f"f({a})={a}*{a}"],
        [f"{a}(y+1)", f"{a}y+{a}", f"{a}*(y+1)", f"(y+1){a}", f"{a} (y+1)", f"{a}(y)+{a}", f"{a}(1+y)"],
        [f"re({n})", f"{n}", f"im({n})", "0", f"re({n}+3j)", f"Re({n})", f"im({n}j)", f"\\Re({n})", f"frac({n})", f"li({n})", f"ff({n},2)", f"rf({n},2)"],
        [f"f'({a})", f"f^\\prime({a})", f"f'({a})=0", f"y''", f"y'", f"\\dot{{y}}", f"y^{{\\prime\\prime}}"],
        [f"\\log_2 {n}", f"\\log_{{2}} {n}", f"log_2({n})", f"\\log_2({n})", f"\\lg {n}", f"\\log_2{{{n}}}"],
        [f"\\max({n},{m})", f"max({n},{m})", f"\\min\\{{{n},{m}\\}}", f"{max(n, m)}", f"\\gcd({n},{m})"],
        [f"\\binom{{{n + m}}}{{{m}}}", f"\\dbinom{{{n + m}}}{{{m}}}", f"{{{n + m} \\choose {m}}}", f"C({n + m},{m})", f"C_{{{n + m}}}^{{{m}}}"],
    ]
    group = r.choice(groups)
    return r.choice(group), r.choice(group)


WRAPS = (
    "text textrm textit textbf textsf texttt textsc textsl textup textmd textnormal emph mbox hbox fbox mathrm mathbf mathit mathsf mathtt mathbb mathcal mathscr mathfrak boldsymbol bm "
    "operatorname mathop mathbin mathrel mathord boxed phantom hphantom vphantom smash mathrlap mathllap mathclap rlap llap overline underline widehat widetilde hat bar vec tilde dot ddot check breve acute grave "
    "overbrace underbrace overrightarrow overleftarrow underbar cancel bcancel xcancel sout ensuremath displaystyle textstyle scriptstyle scriptscriptstyle tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge "
    "left right big Big bigg Bigg bigl bigr Bigl Bigr underset stackrel label tag ref eqref cite footnote url href color textcolor colorbox hspace vspace mspace hskip mskip kern raisebox quad qquad "
    "xrightarrow xleftarrow not neg lnot uppercase lowercase MakeUppercase textsuperscript textsubscript ket bra title author date keywords section input hint unknowncommand"
).split()
LEADS = (
    "\\color{red}{%s}|\\textcolor{red}{%s}|{\\color{red}%s}|\\color{red} %s|\\textcolor[rgb]{1,0,0}{%s}|\\color[HTML]{FF0000}%s|\\colorbox{red}{%s}|\\fcolorbox{red}{blue}{%s}|\\fcolorbox{red}{%s}|\\boxframe{1}{2}{%s}|%s\\label{a}|%s\\tag{1}|"
    "%s\\hspace{1cm}|%s\\hspace*{2mm}|\\hspace{-1em}%s|%s\\vspace{1cm}|%s\\mspace{2mu}|%s\\kern1pt|%s\\hskip 1pt|\\phantom{1}%s|\\hphantom{1}%s|\\vphantom{X}%s|\\hphantom[a]{1}%s|\\mathrlap{%s}|\\smash[b]{%s}|\\xrightarrow{a}%s|"
    "%s\\xrightarrow[a]{b}|\\xleftarrow{%s}|\\overset{a}{%s}|\\underset{a}{%s}|\\stackrel{a}{%s}|\\underbrace{%s}_{a}|\\overbrace{%s}^{2}|\\big(%s\\big)|\\Big[%s\\Big]|\\bigl(%s\\bigr)|\\left(%s\\right)|\\left[%s\\right]|\\left\\{%s\\right\\}|"
    "\\left.%s\\right|\\large %s|{\\large %s}|\\displaystyle %s|{\\displaystyle %s}|\\mathop{%s}\\limits|\\operatorname{a}%s|\\operatorname*{%s}|\\ensuremath{%s}|\\(%s\\)|\\[%s\\]|$%s$|$$%s$$|\\;%s|%s\\,|%s\\ |~%s|%s~|%s\\quad|\\qquad %s|"
    "%s\\!|\\!%s|%s\\\\|%s\\\\[2mm]|%s\\\\*|%s%% comment|%s\\footnote{a}|%s\\cite{a}|%s\\ref{a}|%s\\eqref{a}|\\href{u}{%s}|\\url{%s}|\\raisebox{1pt}{%s}|\\begin{equation}%s\\end{equation}|\\begin{aligned}%s\\end{aligned}|\\begin{align*}%s\\end{align*}|"
    "\\begin{array}{c}%s\\end{array}|\\begin{cases}%s\\end{cases}|\\begin{center}%s\\end{center}|\\begin{matrix}%s\\end{matrix}|\\begin{pmatrix}%s\\end{pmatrix}|\\text{ %s}|\\text{%s }|\\text{%s cm}|%s\\text{ cm}|%s\\text{cm}|%s~\\text{cm}|%s \\mathrm{cm}|"
    "\\boxed{%s}|\\fbox{%s}|\\framebox{%s}|\\texttt{%s}|\\verb|%s||\\frac{%s}{1}|\\sqrt[2]{%s}|\\not{%s}|\\not%s|-%s|{-}%s|{%s}|{{%s}}|{}%s|%s{}|\\relax %s|\\mathbf %s|\\mathrm %s|\\text %s|\\bf %s|\\rm %s|\\it{%s}|\\texorpdfstring{%s}{a}|\\texorpdfstring{a}{%s}|"
    "\\lim_{x\\to 0}%s|\\sum_{i=1}^{n}%s|\\int %s dx|%s\\degree|%s^\\circ|%s^{\\circ}|%s°|\\angle %s|\\hbox{%s}|\\cancel{%s}|\\cancelto{0}{%s}|\\newcommand{\\a}{b}%s|\\def\\a{b}%s|\\includegraphics{a}%s|\\title{a}%s|\\section{%s}|\\item %s|\\item[a] %s|\\ %s|%s\\/"
).split("|")
VALUES = ["5", "12", "1/2", "x", "2x", "0.5", "\\pi", "\\sqrt{2}", "x+1", "\\frac{1}{2}", "A", "R", "-3", "x^2", "3.14", "ab"]


def macros(r):
    value = r.choice(VALUES)
    wrapped = f"\\{r.choice(WRAPS)}{{{value}}}" if r.random() < 0.45 else r.choice(LEADS).replace("%s", value).replace("%%", "%")
    other = r.choice([value, value, value, value, "5", f"{r.choice(VALUES)}", f"\\{r.choice(WRAPS)}{{{value}}}"])
    if r.random() < 0.2:
        wrapped = r.choice(["2", "x", "-", "3+", "("]) + wrapped
    return (wrapped, other) if r.random() < 0.7 else (other, wrapped)


UNITS = (
    "cm,\\text{ cm},\\text{cm},\\mathrm{cm},\\ \\mathrm{cm},~\\text{cm}, cm^2,\\text{ cm}^2,\\mathrm{cm}^{2}, cm^3, meters,\\text{ meters}, m,\\text{ m}, degrees,^\\circ,^{\\circ},\\degree,°, degree,\\text{ degrees},\\%,%, percent, dollars,"
    "\\text{ dollars}, hours,\\text{ hours}, minutes, seconds, days, weeks, months, years, feet, inches, inch, foot, yards, miles, mph,\\text{ mph}, kg,\\text{ kg}, g, km,\\text{ km}, km/h,\\text{ km/h}, m/s, liters, liter, units,\\text{ units},"
    " square units,\\text{ square units}, sq cm, points, cents,\\text{ cents}, ways, people,\\text{ people}, \\text{apples}, million, billion, trillion,\\,\\text{cm},\\;\\text{m},\\:\\text{s}, centimeters, centimeter, minute, hour, day, yard, mile, week, year, months^2"
).split(",")


def units(r):
    n = r.choice(["5", "12", "1/2", "\\frac{1}{2}", "3.5", "100", "1,000", "2\\sqrt{3}", "x", "6\\pi", "-4", "1234"])
    forms = [n, n + r.choice(UNITS), n + r.choice(UNITS), f"\\text{{{n}}}", f"\\${n}", f"\\$ {n}", f"{n}.00", f"${n}", f"{n}0", f"about {n}", f"{n} ", f"{n}."]
    return r.choice(forms), r.choice(forms)


def sets(r):
    n, m, k = r.sample(["1", "2", "3", "-4", "5.0", "0", "1/2", "\\frac{1}{2}", "0.5", "x", "\\sqrt{2}", "\\pi", "\\infty", "-\\infty", "1,000", "a+1"], 3)
    o, c = r.choice([("\\{", "\\}"), ("{", "}"), ("\\left\\{", "\\right\\}"), ("(", ")"), ("[", "]"), ("[", ")"), ("(", "]"), ("\\left(", "\\right)"), ("\\left[", "\\right]"), ("\\left[", "\\right)"), ("\\big(", "\\big)"), ("\\lbrace ", "\\rbrace"), ("\\langle ", "\\rangle"), ("<", ">"), ("", "")])
    o2, c2 = (o, c) if r.random() < 0.6 else r.choice([("\\{", "\\}"), ("(", ")"), ("[", "]"), ("\\left(", "\\right)"), ("\\left[", "\\right)"), ("[", ")"), ("", "")])
    gap = r.choice([",", ", ", " ,", ";", "\\,,", ",\\ "])
    gap2 = r.choice([",", ", ", gap])
    items = [n, m, k][: r.choice([1, 2, 2, 2, 3])]
    others = list(items)
    if r.random() < 0.3:
        r.shuffle(others)
    if r.random() < 0.4:
        swap = {"1/2": "\\frac{1}{2}", "\\frac{1}{2}": "0.5", "0.5": "1/2", "1": "1.0", "2": "4/2", "5.0": "5", "\\sqrt{2}": "sqrt(2)", "\\pi": "pi", "a+1": "1+a", "1,000": "1000", "\\infty": "∞", "x": "1x", "3": "03"}
        others = [swap.get(one, one) for one in others]
    left, right = o + gap.join(items) + c, o2 + gap2.join(others) + c2
    if r.random() < 0.35:
        word, word2 = r.choice(["\\cup ", "\\cup", "U", "∪", "\\cap ", " \\text{ or } ", " and ", ","]), r.choice(["\\cup ", " \\cup ", "U", "∪"])
        left, right = f"{left}{word}{left if r.random() < 0.5 else '(3,4)'}", f"{right}{word2}{right if r.random() < 0.5 else '(3,4)'}"
    if r.random() < 0.15:
        left = r.choice(["x \\in ", "x\\in", "x=", "(x,y)=", "A=", "k \\in "]) + left
    return left, right


SIGNS = (
    "\\ne|\\neq|≠|!=|\\le|\\leq|≤|\\leqslant|<=|<|\\lt|\\ge|\\geq|\\geqslant|>=|>|\\gt|=|\\equiv|\\approx|\\sim|\\simeq|\\cong|\\propto|\\in|\\notin|\\not\\in|\\ni|\\subset|\\subseteq|\\supset|\\supseteq|\\to|\\rightarrow|\\longrightarrow|\\Rightarrow|\\implies|"
    "\\iff|\\Leftrightarrow|\\leftrightarrow|\\mapsto|\\mid|\\nmid|\\parallel|\\perp|\\cdot|\\times|*|\\ast|\\star|\\div|/|\\pm|\\mp|\\cup|\\cap|\\setminus|\\backslash|\\wedge|\\vee|\\land|\\lor|\\oplus|\\otimes|\\circ|\\bullet|\\colon|:|\\ldots|\\dots|\\cdots|...|"
    "\\vdots|\\quad|\\,|\\;|\\&|\\#|\\_|~|--|---|``|''|!`|\\|\\\\|\\pmod|\\bmod|\\mod|\\triangle|\\angle|\\wp|\\ell|\\hbar|\\Re|\\Im|\\aleph|\\nabla|\\partial|\\prime|\\dagger|\\infty|\\emptyset|\\varnothing|\\forall|\\exists|\\neg|\\because|\\therefore|\\square|\\Box|\\diamond"
).split("|")
GREEK = "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron pi varpi rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega".split()


def signs(r):
    a, b = r.choice(LETTERS), r.choice(["1", "0", "y", "2x", "3.0", "\\frac12"])
    s, s2 = r.choice(SIGNS), r.choice(SIGNS)
    if r.random() < 0.35:
        g, g2 = r.choice(GREEK), r.choice(GREEK)
        unicode_letter = {"alpha": "α", "beta": "β", "pi": "π", "theta": "θ", "phi": "φ", "epsilon": "ε", "mu": "μ", "lambda": "λ", "omega": "ω", "Delta": "Δ"}
        forms = [f"\\{g}", f"{g}", unicode_letter.get(g, g), f"2\\{g}", f"\\{g} 2", f"2{g}", f"\\{g}^2", f"\\{g} \\{g}", f"\\{g2}", f"\\{g}x", f"x\\{g}", f"2*{unicode_letter.get(g, g)}", f"\\frac{{\\{g}}}{{2}}", f"\\{g}/2", f"\\{g}_1", f"\\{g}(2)"]
        return r.choice(forms), r.choice(forms)
    if r.random() < 0.5:
        s2 = s
    space, space2 = r.choice(["", " "]), r.choice(["", " "])
    return f"{a}{space}{s} {b}", f"{a}{space2}{s2} {r.choice([b, b, '2', '1*' + b])}"


def pis(r):
    n = r.choice([1, 2, 3, 4, 0.5, 12])
    forms = [f"{n}\\pi", f"{n}π", f"{n}pi", f"{n}*pi", f"\\pi*{n}", f"\\pi {n}", f"{n} \\pi", f"{n}*3.14", f"{n * 3.14:.2f}", f"{n * 3.141592653589793}", f"{n * 3.1416:.4f}", f"\\frac{{{n}\\pi}}{{2}}", f"{n}\\pi/2", f"{n / 2}\\pi", f"\\frac{{{n}}}{{2}}\\pi",
             f"\\pi", f"pi", f"3.14", f"3.14159", f"{n}\\pi^2", f"\\pi^2*{n}", f"{n}\\pi r", f"{n}+\\pi", f"\\pi+{n}", f"({n}\\pi)", f"{n}\\cdot\\pi", f"{n}\\times\\pi", f"{n}\\pi\\text{{ cm}}", f"\\pi\\sqrt{{{n}}}", f"\\frac{{\\pi}}{{{n}}}", f"\\pi/{n}", f"{n}\\pi+{n}", f"{n}(\\pi+1)", f"\\mathrm{{\\pi}}", f"-\\pi", f"-{n}\\pi"]
    return r.choice(forms), r.choice(forms)


def matrices(r):
    items = [r.choice(["1", "2", "-3", "x", "\\frac{1}{2}", "0.5", "1/2"]) for _ in range(4)]
    others = items if r.random() < 0.7 else [r.choice(["1", "2", "-3", "x"]) for _ in range(4)]
    def one(values):
        name = r.choice(["pmatrix", "bmatrix", "vmatrix", "matrix", "array", "smallmatrix", "Bmatrix", "cases", "aligned"])
        spec = "{cc}" if name == "array" else ""
        a, b, c, d = values
        kind = r.random()
        gap = r.choice(["&", " & "])
        end = r.choice(["\\\\", " \\\\ ", "\\\\\n"])
        if kind < 0.5:
            return f"\\begin{{{name}}}{spec}{a}{gap}{b}{end}{c}{gap}{d}\\end{{{name}}}"
        if kind < 0.7:
            return f"\\begin{{{name}}}{spec}{a}{end}{b}\\end{{{name}}}"
        if kind < 0.8:
            return f"\\begin{{{name}}}{spec} {a} {gap} {b} \\end{{{name}}}"
        return r.choice([f"[[{a},{b}],[{c},{d}]]", f"[{a},{b}]", f"({a},{b})", f"Matrix([[{a},{b}]])", f"\\binom{{{a}}}{{{b}}}", f"\\left({a},{b}\\right)", f"Point({a}, {b})", f"Interval({a}, {b})"])
    return one(items), one(others)


WORDS = "A B (A) (B) \\text{A} \\text{(A)} \\textbf{(B)} \\mathrm{(B)} a b yes no Yes true false True None none even odd \\text{even} \\text{ even} inf nan infinity oo \\text{no} No. impossible DNE undefined i e I E x".split(" ") + [
    "A and B", "B and A", "no solution", "\\text{no solution}", "\\text{No solution}", "the answer", "answer is 5", "5 is the answer", "x is 5", "x = 5", "5. ", "so x=5. Done", "A, B", "\\text{A and B}", "", " ", "\\text{}", "{}", "()", "n/a", "Monday", "3:30", "3:30 pm",
    "\\text{Monday}", "12_3", "101_2", "101_{2}", "101_{\\text{two}}", "5_{10}", "x_1", "x_{1}", "x_1+x_2", "x_2+x_1", "1 2", "1 2/3", "12/3", "1\\ 2", "x y", "yx", "xy",
]


def words(r):
    return r.choice(WORDS), r.choice(WORDS)


# --- expressions as trees, written in two ways ---------------------------------------------------


def tree(r, depth, letters):
    if depth == 0 or r.random() < 0.2:
        kind = r.random()
        if kind < 0.45 and letters:
            return ("leaf", r.choice(letters))
        if kind < 0.85:
            return ("leaf", r.choice(["1", "2", "3", "4", "5", "6", "10", "12", "0", "-1"]))
        if kind < 0.95:
            return ("leaf", r.choice(["0.5", "0.1", "0.25", "1.5", "0.2", "2.0", ".5", "1e2", "3.14", "0.3", "1.1"]))
        return ("leaf", r.choice(letters) if letters else "pi")
    sign = r.choice(["+", "+", "-", "-", "*", "*", "/", "/", "^", "^", "sqrt", "negative", "ln", "!"])
    if sign == "^":
        return (sign, tree(r, depth - 1, letters), ("leaf", r.choice(["2", "3", "-1", "1", "0", "2", "-2"])) if r.random() < 0.85 else tree(r, 0, letters))
    if sign in ["sqrt", "negative"]:
        return (sign, tree(r, depth - 1, letters))
    if sign in ["ln", "!"] and r.random() < 0.4:
        return (sign, tree(r, 0, [] if sign == "ln" else letters))
    return (sign if len(sign) == 1 and sign != "!" else "*", tree(r, depth - 1, letters), tree(r, depth - 1, letters))


def rewritten(r, node):
    """The same value, mostly."""
    if node[0] == "leaf":
        other = {"0.5": ("/", "1", "2"), "0.1": ("/", "1", "10"), "0.25": ("/", "1", "4"), "1.5": ("/", "3", "2"), "0.3": ("+", "0.1", "0.2"), "3.14": ("/", "157", "50")}.get(node[1])
        if other is not None and r.random() < 0.5:
            return (other[0], ("leaf", other[1]), ("leaf", other[2]))
        two, three = ("leaf", "2"), ("leaf", "3")
        longer = [("*", node, ("leaf", "1")), ("+", node, ("leaf", "0")), ("/", ("*", two, node), two), ("-", ("*", three, node), ("*", two, node)), ("^", ("sqrt", node), two)]
        return r.choice(longer) if r.random() < 0.1 else node
    sign, *parts = node
    parts = [rewritten(r, part) for part in parts]
    if r.random() > 0.35:
        return (sign, *parts)
    first, second = parts[0], parts[-1]
    if sign == "*" and first[0] in "+-":
        return (first[0], ("*", first[1], second), ("*", first[2], second))
    if sign in "+*":
        return (sign, second, first)
    if sign == "-":
        return ("negative", ("-", second, first))
    if sign == "/":
        return ("*", first, ("^", second, ("leaf", "-1")))
    if sign == "^" and second == ("leaf", "2"):
        return ("*", first, first)
    if sign == "sqrt" and first[0] == "*":
        return ("*", ("sqrt", first[1]), ("sqrt", first[2]))
    return ("*", ("leaf", "-1"), first) if sign == "negative" else (sign, *parts)


def written(r, node, tex):
    sign, *parts = node
    if sign == "leaf":
        return "\\pi" if tex and parts[0] == "pi" else parts[0]

    def inside(part):
        text = written(r, part, tex)
        if part[0] in ["leaf", "sqrt", "ln"] and not text.startswith("-") and r.random() < 0.9:
            return text
        return f"\\left({text}\\right)" if tex and r.random() < 0.3 else f"({text})"

    if sign in "+-":
        second = parts[1][0] in ["leaf", "*", "^", "sqrt"] or (sign == "+" and parts[1][0] != "negative")
        return written(r, parts[0], tex) + r.choice([sign, f" {sign} "]) + (written(r, parts[1], tex) if second else inside(parts[1]))
    if sign == "*":
        left, right = inside(parts[0]), inside(parts[1])
        between = ["*", "*", " "] if right[:1].isdigit() or right[:1] == "." else ["*", "", " ", "\\cdot " if tex else "*", "\\times " if tex else "*"]
        return left + r.choice(between) + right
    if sign == "/":
        if tex and r.random() < 0.6:
            return f"\\frac{{{written(r, parts[0], tex)}}}{{{written(r, parts[1], tex)}}}"
        return f"{inside(parts[0])}/{inside(parts[1])}"
    if sign == "^":
        exponent = written(r, parts[1], tex)
        return f"{inside(parts[0])}^" + (exponent if len(exponent) == 1 or r.random() < 0.5 else f"{{{exponent}}}")
    if sign == "negative":
        return f"-{inside(parts[0])}"
    if sign == "!":
        return f"{inside(parts[0])}!"
    text = written(r, parts[0], tex)
    return (f"\\sqrt{{{text}}}" if sign == "sqrt" else f"\\ln({text})") if tex else f"{sign}({text})"


def trees(r):
    letters = r.choice([[], ["x"], ["x", "y"], ["a", "b"], ["n"]])
    one = tree(r, r.choice([1, 2, 2, 3]), letters)
    other = rewritten(r, one if r.random() < 0.85 else tree(r, 2, letters))
    answer, truth = written(r, one, r.random() < 0.5), written(r, other, r.random() < 0.5)
    return (answer, truth) if len(answer) < 60 and len(truth) < 60 else sums(r)


def broken(r):
    """A pair of another kind with something cut out of it or put into it."""
    answer, truth = r.choice([powers, fractions, roots, macros, sets, units])(r)
    for _ in range(r.choice([1, 1, 2])):
        at = r.randrange(len(answer) + 1)
        put = r.choice(["", "{", "}", "(", ")", "\\", " ", "[", "]", "$", "%", "^", "_", "!", "'", ".", ",", "&", "~", "\n", "x", "2", "-", "+", "*", "/", "\\frac", "\\sqrt", "\\begin{a}", "\\end{a}"])
        answer = answer[:at] + put + answer[at + r.choice([0, 0, 1]) :]
    return (answer, answer_or(r, answer, truth))


def answer_or(r, answer, truth):
    return truth if r.random() < 0.7 else answer.replace(" ", "")


KINDS = [(powers, 5), (sums, 3), (fractions, 4), (numbers, 4), (roots, 4), (functions, 3), (macros, 7), (units, 3), (sets, 5), (signs, 4), (pis, 2), (matrices, 2), (words, 1), (trees, 8), (broken, 3)]


def pairs(seed, count):
    r = random.Random(seed)
    makers = [maker for maker, weight in KINDS for _ in range(weight)]
    seen = set()
    for maker in itertools.cycle(makers):
        pair = maker(r)
        if pair in seen or (pair[0] == pair[1] and r.random() < 0.8):
            continue
        seen.add(pair)
        yield pair
        if len(seen) == count:
            return


def verdicts(scorers, answer, truth):
    return "".join("1" if scorer(answer, truth) else "0" for scorer in scorers)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    scorers = load_scorers(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 8000
    out = sys.stdout
    sys.stdout = sys.stderr  # The scorers print.
    for answer, truth in pairs(seed, count):
        line = [verdicts(scorers, answer, truth), answer, truth]
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")), file=out, flush=True)
