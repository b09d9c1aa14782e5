"""Image files as strangers upload them."""

import io
import random
import struct
import zlib
from typing import Any

from PIL import Image


def image_file(image: Image.Image, file_format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


def plain(colour: str = "red", size: tuple[int, int] = (30, 20)) -> bytes:
    return image_file(Image.new("RGB", size, colour))


def noise(width: int, height: int, seed: int = 1) -> Image.Image:
    """Return what no format can make short."""
    return Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(width * height * 3))


def wide_png(width: int, height: int) -> bytes:
    """Return a black PNG of one bit a pixel: some kilobytes, whatever its size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))
