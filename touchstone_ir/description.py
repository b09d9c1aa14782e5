"""What the command can do, as one JSON document that programs read."""

import argparse
import json
from typing import Any

from analytics.estimation.claims import CLAIMS
from judging.formats import FORMATS
from sampling.measures.registry import suggested_measures
from touchstone_ir.command_parts import ALL_REFUSED, BAD_INPUT, DIFFERENT, DONE
from touchstone_ir.commands import COMMANDS
from touchstone_ir.measures import SERVED
from touchstone_ir.results import COLUMNS, SCHEMA

EXIT_CODES = {
    DONE: "done; of gate: better, or not worse",
    DIFFERENT: "of verify: something differs; of gate: worse",
    BAD_INPUT: "bad input, or bad arguments; nothing was written",
    3: "of gate: judgments are wanted",
    4: "of gate: undecided at the cap",
    ALL_REFUSED: "every row of the result is a refusal",
}


def description() -> dict[str, Any]:
    """Return commands with their options, formats, measures, exit codes and the columns of a result."""
    from touchstone_ir.command import parser

    whole = parser()
    (choices,) = (one for one in whole._actions if isinstance(one, argparse._SubParsersAction))
    return {
        "program": "touchstone",
        "commands": [_command(choices.choices[one.name], one.name, one.codes) for one in COMMANDS],
        "formats": [
            {
                "key": one.key,
                "holds": one.holds,
                "label": one.label,
                "tool": one.tool,
                "extensions": list(one.extensions),
                "is_written": one.write is not None,
            }
            for one in FORMATS
        ],
        "measures": suggested_measures(SERVED),
        "claims": {one.key: one.help for one in CLAIMS},
        "exit_codes": {str(code): words for code, words in EXIT_CODES.items()},
        "result": {name: str(SCHEMA[name]) for name in COLUMNS},
    }


def description_json() -> str:
    """Return the description as text."""
    return json.dumps(description(), ensure_ascii=False, indent=1)


def _command(parser: argparse.ArgumentParser, name: str, codes: tuple[int, ...]) -> dict[str, Any]:
    """Return a command as its parser has it, with its steps where it has some."""
    own = [one for one in parser._actions if not isinstance(one, argparse._HelpAction)]
    steps = [one for one in own if isinstance(one, argparse._SubParsersAction)]
    found: dict[str, Any] = {
        "name": name,
        "help": parser.description,
        "arguments": [_argument(one) for one in own if one not in steps],
        "exit_codes": list(codes),
    }
    if steps:
        found["steps"] = [_command(step, key, codes) for key, step in steps[0].choices.items()]
    return found


def _argument(one: argparse.Action) -> dict[str, Any]:
    return {
        "name": one.dest,
        "flags": list(one.option_strings),
        "is_required": bool(one.required),
        "takes": one.nargs if one.nargs is not None else 1,
        "choices": None if one.choices is None else [str(choice) for choice in one.choices],
        "default": None if one.default is None else str(one.default),
        "help": one.help or "",
    }
