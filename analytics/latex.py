"""Text as LaTeX prints it: every character that means something there, escaped. Tables and sentences write with it."""

import re

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # babel's shorthand in some languages
    "`": r"\textasciigrave{}",
    "\ufffd": "?",
}
LIGATURES = re.compile(r"([-,'])(?=\1)")  # two would become a dash, a low quote, a quotation mark
STATISTIC = r"\bt\(\d+\) = [+-]?\d+\.\d+|\b[pn] [=<>] (?:\d+(?:,\d{3})*)?(?:\.\d+)?"
SIGNED = r"(?<![^\s(])[+-]\d+(?:\.\d+)?(?![\w-])"  # else the minus would be a hyphen
FORMULA = re.compile(f"{STATISTIC}|{SIGNED}")


def latex_text(text: str) -> str:
    r"""Return a text as LaTeX prints it, character by character.

    >>> latex_text("a_b&50%")
    'a\\_b\\&50\\%'
    """
    return LIGATURES.sub(r"\1{}", "".join(SPECIAL.get(letter, letter) for letter in text))


def latex_sentence(text: str) -> str:
    r"""Return a sentence for LaTeX: statistics and signed numbers as formulas, other characters as they are written.

    >>> latex_sentence("run_1: 95 % (t(44) = 2.32, p < .001), -0.25")
    'run\\_1: 95 \\% ($t(44) = 2.32$, $p < .001$), $-0.25$'
    """
    parts, end = [], 0
    for found in FORMULA.finditer(text):
        parts += [latex_text(text[end : found.start()]), f"${found.group().replace(',', '{,}')}$"]
        end = found.end()
    return "".join([*parts, latex_text(text[end:])])
