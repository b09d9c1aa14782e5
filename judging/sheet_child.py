"""The limited process that reads one spreadsheet: started by `judging/sheets.py`, by its path, isolated.

It gets the file on its standard input and answers on its standard output, in pieces of a length and JSON: the names of
the sheets; then rows of the first sheet with anything in it, each as texts. An empty piece is the end.
"""

import json
import signal
import sys
import time
from typing import Any

NUMBER_BYTES = 8
ROWS = 500  # in a piece


def _send(value: Any) -> None:
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") if value is not None else b""
    sys.stdout.buffer.write(len(data).to_bytes(NUMBER_BYTES, "little") + data)
    sys.stdout.buffer.flush()


def _limit(cpu_seconds: int, memory_bytes: int) -> None:
    import resource  # only Unix has it, and who imports this file reads no spreadsheet yet

    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    soft = int(time.process_time()) + cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _serve(cpu_seconds: int, memory_bytes: int) -> None:
    try:
        import fastexcel  # only the child may parse what strangers wrote
    except ImportError:  # the wheel touchstone-ir does without it
        _send({"error": "fastexcel is not installed; save the sheet as CSV"})
        return
    import polars as pl

    list(
        pl.DataFrame({"a": ["b"]}).iter_slices(1)
    )  # what is imported late must not be opened behind the limits
    _limit(cpu_seconds, memory_bytes)
    data = sys.stdin.buffer.read()
    try:
        reader = fastexcel.read_excel(data)
        names = list(reader.sheet_names)
        _send({"sheets": names})
        for name in names:
            sheet = reader.load_sheet(name, header_row=None, skip_rows=0, dtypes="string")
            if sheet.height:
                _send_rows(sheet, name)
                break
        _send(None)
    except fastexcel.FastExcelError as error:
        _send({"error": " ".join(str(error).split())[:200]})


def _send_rows(sheet: Any, name: str) -> None:
    """Send the rows from the first of the sheet on; columns in front of the first used one are empty."""
    before = [""] * min(column.absolute_index for column in sheet.available_columns())
    _send({"sheet": name})
    for part in sheet.to_polars().iter_slices(ROWS):
        _send([before + ["" if cell is None else cell for cell in row] for row in part.rows()])


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
