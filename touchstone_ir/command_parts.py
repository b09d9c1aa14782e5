"""What commands share: how an argument is declared, how a result is written, and with which code they end."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from touchstone_ir.results import Result

DONE, DIFFERENT, BAD_INPUT, ALL_REFUSED = 0, 1, 2, 5
OUTPUTS: dict[str, Callable[[Result], str]] = {
    "table": str,
    "json": Result.to_json,
    "csv": Result.to_csv,
    "latex": Result.to_latex,
    "markdown": Result.to_markdown,
}


@dataclass(frozen=True)
class Argument:
    """An argument: its flags or its name, and what argparse takes besides."""

    flags: tuple[str, ...]
    options: dict[str, Any]


def argument(*flags: str, **options: Any) -> Argument:
    """Return an argument as argparse spells it."""
    return Argument(flags, options)


OUT = argument("--out", "-o", metavar="FILE", help="write there instead of to standard output")
PRINTING = (
    argument("--output", choices=[*OUTPUTS], default="table", help="how the result is written"),
    OUT,
    argument("--plot", metavar="FILE", help="a picture as well: .svg, .pdf or .png"),
)


def add_all(parser: argparse.ArgumentParser, arguments: Sequence[Argument]) -> None:
    """Add arguments to a parser."""
    for one in arguments:
        parser.add_argument(*one.flags, **one.options)


def write_text(text: str, out: str | None, echo: Callable[[str], object] = print) -> None:
    """Write a text into a file, or to standard output where none is named."""
    if out is None:
        echo(text)
    else:
        Path(out).write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")


def print_result(
    result: Result,
    options: argparse.Namespace,
    table: Callable[[Result], str] = str,
    echo: Callable[[str], object] = print,
) -> int:
    """Write a result as the options of PRINTING say, and return the exit code."""
    if options.plot:  # first: where it cannot be drawn, nothing is written
        result.plot(options.plot)
    write = {**OUTPUTS, "table": table}[options.output]
    write_text(write(result).rstrip("\n"), options.out, echo)
    return ALL_REFUSED if result.is_refused else DONE
