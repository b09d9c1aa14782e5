"""Why a step of a gate is refused."""


class GateRefused(ValueError):
    """What was given does not fit the gate; nothing was changed. A fault in a line of a file is a `TrecFormatError`."""
