"""Where a release tells a name: in its files, unpacked, in the names of its files, and however a format writes it."""

import gzip
import html
import io
import json
from urllib.parse import quote

import polars as pl
from made_releases import opened


def contents(inside):
    """Yield every file of a release as bytes that can be searched: unpacked, and Parquet as text."""
    for name in inside.names:
        content = inside.read(name)
        yield name, content
        if name.endswith(".gz"):
            yield name, gzip.decompress(content)
        if name.endswith(".parquet"):
            yield name, pl.read_parquet(io.BytesIO(content)).write_json().encode()


def spellings(name):
    """Return a name as texts, JSON, HTML, addresses and YAML or LaTeX write it."""
    latex = name.replace("&", r"\&").replace("_", r"\_")
    return {
        name, json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1], html.escape(name), quote(name),
        quote(name, safe=""), latex,
    }  # fmt: skip


def told_anywhere(release, name):
    """Return the files of a release that tell the name, and "zip" where the archive itself does."""
    words = [one.encode() for one in spellings(name)]
    told = [file for file, content in contents(opened(release)) if any(word in content for word in words)]
    inside = opened(release)
    return told + ["zip"] * any(
        word.decode() in file for word in words for file in (inside.top, *inside.names)
    )
