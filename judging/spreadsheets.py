"""CSV for people who open it in a spreadsheet: a text that would run as a formula is shown instead."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a formula can begin with


def spreadsheet_text(text: str) -> str:
    """Return the text as a spreadsheet shows it: an apostrophe stands before one that it would run as a formula.

    Files that programs read back get none: there it would change an id.

    >>> spreadsheet_text("=1+1"), spreadsheet_text("bob")
    ("'=1+1", 'bob')
    """
    return f"'{text}" if text.startswith(FORMULA) else text
