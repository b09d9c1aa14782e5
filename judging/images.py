"""Images that strangers upload: decoded and encoded anew, in a limited child process.

What is kept is a picture of ours: no metadata, no second frame, nothing that the decoder did not see. SVG is refused,
because it can hold scripts and addresses. Never call `read_images` in a web request.
"""

import io
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judging.limited_child import LimitedChild

if TYPE_CHECKING:
    from PIL.Image import Image

CHILD = "judging.images.encode"
FORMATS = {"png": "PNG", "jpeg": "JPEG", "webp": "WebP", "gif": "GIF"}
MOST_BYTES = 512 * 1024  # of a picture that is kept
MOST_SHOWN = 4 << 20  # bytes of all pictures that a document shows
MOST_READ = 20 << 20  # bytes of an uploaded file
MOST_PIXELS = 50_000_000
LONGEST_SIDE = 1_600  # pixels; a document is shown about 700 wide
LONGEST_PATH = 500
QUALITIES = (85, 70, 50)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What untrusted images may cost: one of them, and all together (see `judging.sanitise.Allowance`).

    An honest photograph of a megabyte takes half a second, a screenshot two seconds a megabyte.
    """

    cpu_seconds: int = 10
    memory_bytes: int = 1 << 30
    total_seconds: float = 120.0
    seconds_per_byte: float = 4e-6


ALLOWANCE = Allowance()


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as it is kept and shown."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ReadImage:
    """A file of an upload: its picture, or what is wrong with it in one sentence."""

    name: str
    picture: Picture | None = None
    fault: str = ""


def image_kind(head: bytes) -> str:
    """Return what kind of image a file is by its first bytes: png, jpeg, webp, gif, svg; empty for anything else.

    >>> image_kind(b"GIF89a..."), image_kind(b"<?xml version='1.0'?>\\n<svg xmlns="), image_kind(b"%PDF-1.7")
    ('gif', 'svg', '')
    """
    for kind, magic in (("png", b"\x89PNG\r\n\x1a\n"), ("jpeg", b"\xff\xd8\xff"), ("gif", b"GIF8")):
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    start = head[:2000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    is_svg = start.startswith(b"<svg") or (
        start.startswith((b"<?xml", b"<!doctype svg", b"<!--")) and b"<svg" in start
    )
    return "svg" if is_svg else ""


def read_images(
    files: Iterable[tuple[str, bytes]], *, allowance: Allowance = ALLOWANCE
) -> Iterator[ReadImage]:
    """Return the picture or the fault of each (name, content), in order; one child serves all until it dies."""
    child: LimitedChild | None = None
    left = allowance.total_seconds
    try:
        for name, content in files:
            fault = _fault_at_sight(content)
            left += len(content) * allowance.seconds_per_byte
            if not fault and left <= 0:
                fault = "not read, because the images before it took too long"
            if fault:
                yield ReadImage(name, fault=f"{name}: {fault}")
                continue
            child = child or LimitedChild(CHILD, allowance.cpu_seconds, allowance.memory_bytes)
            started = time.monotonic()
            answer = child.ask(content, MOST_BYTES + 1000)
            if answer is None:
                left -= min(time.monotonic() - started, allowance.cpu_seconds)
                child.close()
                child = None
                yield ReadImage(
                    name, fault=f"{name}: the image cannot be read in the time and memory there is for one"
                )
                continue
            (media_type, data, wrong), seconds = answer
            left -= seconds
            if wrong:
                yield ReadImage(name, fault=f"{name}: {wrong.decode()}")
            else:
                yield ReadImage(name, Picture(media_type.decode(), data))
    finally:
        if child is not None:
            child.close()


def _fault_at_sight(content: bytes) -> str:
    kind = image_kind(content[:2000])
    if kind == "svg":
        return "SVG images are not shown, because they can hold scripts and addresses; save it as PNG"
    if not kind:
        return f"not an image of a known kind ({', '.join(FORMATS.values())})"
    if len(content) > MOST_READ:
        return f"longer than {MOST_READ >> 20} MB"
    return ""


# -- in the child ---------------------------------------------------------------------------------------------


def encode(content: bytes) -> list[bytes]:
    """Return media type, content and fault of an image; runs in the child only."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not content:  # nothing can be loaded later, so all that these formats may need is loaded now
        for mode in ("RGB", "RGBA"):
            for _, data in _encode_image(Image.new(mode, (1, 1))):
                Image.open(io.BytesIO(data)).load()
        return []
    Image.MAX_IMAGE_PIXELS = None  # ours is below
    try:
        with Image.open(io.BytesIO(content), formats=[name.upper() for name in FORMATS.values()]) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                fault = f"{width:,} x {height:,} pixels; an image has at most {MOST_PIXELS // 10**6} million"
                return [b"", b"", fault.encode()]
            image.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))  # of JPEG, no more than needed is decoded
            image.load()
            is_photograph = image.format in ("JPEG", "MPO")
            picture = _plain(ImageOps.exif_transpose(image))
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError, EOFError):
        return [b"", b"", b"the image is damaged"]
    return [*_small(picture, is_photograph), b""]


def _plain(image: "Image") -> "Image":
    """Return it in plain colours, with transparency only where there is some, and without what was written in it."""
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    if image.mode.startswith("I"):  # 16 bits of grey, of which convert() would make white
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    plain = image.convert("RGBA" if has_alpha else "RGB")
    plain.info.clear()
    return plain


def _small(image: "Image", is_photograph: bool) -> tuple[bytes, bytes]:
    """Return media type and content of a picture of at most MOST_BYTES."""
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    while True:
        for media_type, data in _encode_image(image, is_photograph):
            if len(data) <= MOST_BYTES:
                return media_type, data
        image.thumbnail((image.width * 3 // 4, image.height * 3 // 4))


def _encode_image(image: "Image", is_photograph: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Yield the picture as files, the most faithful first; of a photograph, PNG would be long and slow."""
    lossy: tuple[str, bytes] = ("WEBP", b"image/webp") if image.mode == "RGBA" else ("JPEG", b"image/jpeg")
    ways: list[tuple[str, bytes, dict[str, Any]]] = [] if is_photograph else [("PNG", b"image/png", {})]
    ways += [(*lossy, {"quality": quality}) for quality in QUALITIES]
    for name, media_type, options in ways:
        file = io.BytesIO()
        image.save(file, name, **options)
        yield media_type, file.getvalue()
