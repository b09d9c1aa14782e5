"""Images that strangers upload: what is kept of them, and what they cost."""

import time

import pytest
from PIL import Image
from uploaded_images import image_file, noise, opened, plain, wide_png

from judging.images import LONGEST_SIDE, MOST_BYTES, Allowance, image_kind, read_images


def read(content, **options):
    (found,) = read_images([("figures/a.png", content)], **options)
    return found


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/png"), ("GIF", "image/png")],
)
def test_every_known_kind_becomes_a_picture_of_the_same_size(name, media_type):
    content = image_file(Image.new("RGB", (30, 20), (200, 40, 40)), name)
    assert image_kind(content[:100]) == name.lower()
    picture = read(content).picture
    assert picture.media_type == media_type
    shown = opened(picture.content).convert("RGB")
    assert shown.size == (30, 20)
    assert all(abs(a - b) < 12 for a, b in zip(shown.getpixel((5, 5)), (200, 40, 40), strict=True))


def test_of_a_moving_image_the_first_frame_is_kept():
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "lime", "blue")]
    for name in ("GIF", "WEBP", "PNG"):
        content = image_file(frames[0], name, save_all=True, append_images=frames[1:])
        kept = opened(read(content).picture.content)
        assert getattr(kept, "n_frames", 1) == 1, name
        assert kept.convert("RGB").getpixel((4, 4))[0] > 240, name


def test_transparency_and_the_way_up_are_kept_and_what_the_camera_wrote_is_not():
    clear = Image.new("RGBA", (9, 9), (0, 0, 0, 0))
    assert opened(read(image_file(clear)).picture.content).convert("RGBA").getpixel((4, 4))[3] == 0
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    exif[0x010F] = "a secret place"
    found = read(image_file(Image.new("RGB", (40, 20)), "JPEG", exif=exif, comment=b"a secret word")).picture
    assert opened(found.content).size == (20, 40)
    assert b"secret" not in found.content
    assert not dict(opened(found.content).getexif())


def test_of_the_two_pictures_of_a_telephone_the_first_is_kept():
    two = image_file(
        Image.new("RGB", (40, 20), "red"), "MPO", save_all=True, append_images=[Image.new("RGB", (40, 20))]
    )
    picture = read(two).picture
    assert (picture.media_type, opened(picture.content).size) == ("image/jpeg", (40, 20))
    assert opened(picture.content).getpixel((5, 5))[0] > 240


def test_grey_of_sixteen_bits_stays_grey():
    image = Image.new("I;16", (9, 9))
    image.putpixel((3, 3), 40_000)  # of 65,535: 156 of 255
    assert opened(read(image_file(image)).picture.content).convert("L").getpixel((3, 3)) == 156


@pytest.mark.parametrize(("name", "mode"), [("PNG", "RGB"), ("JPEG", "RGB"), ("WEBP", "RGBA")])
def test_what_is_too_large_is_scaled_until_it_fits(name, mode):
    options = {"lossless": True} if name == "WEBP" else {}
    content = image_file(noise(2400, 1200).convert(mode), name, **options)
    assert len(content) > 2 * MOST_BYTES
    picture = read(content).picture
    assert len(picture.content) <= MOST_BYTES
    width, height = opened(picture.content).size
    assert max(width, height) <= LONGEST_SIDE
    assert abs(width / height - 2) < 0.02


def test_a_png_of_thirty_thousand_pixels_is_one_sentence_and_the_next_image_is_read():
    content = wide_png(30_000, 30_000)
    assert len(content) < 200_000
    before = time.monotonic()
    bomb, good = read_images([("big.png", content), ("good.png", plain())])
    assert time.monotonic() - before < 20
    assert bomb.picture is None
    assert bomb.fault == "big.png: 30,000 x 30,000 pixels; an image has at most 50 million"
    assert (good.fault, good.picture.media_type) == ("", "image/png")


def test_an_image_that_eats_memory_ends_the_child_and_no_other_image():
    """The second wall is the limit of memory: 7,000 x 7,000 pixels are 147 MB, which 1 GB holds and 150 MB do not."""
    content = wide_png(7_000, 7_000)
    assert read(content).picture.media_type == "image/png"
    dead, alive = read_images(
        [("a.png", content), ("b.png", plain())], allowance=Allowance(memory_bytes=150 << 20)
    )
    assert dead.fault == "a.png: the image cannot be read in the time and memory there is for one"
    assert alive.picture is not None


SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>"


@pytest.mark.parametrize(
    "prefix", [b"", b"\xef\xbb\xbf", b"<?xml version='1.0'?>\n", b"<!-- x -->\n", b"\n\n "]
)
def test_svg_is_refused_whatever_stands_before_it(prefix):
    found = read(prefix + SVG)
    assert found.picture is None
    assert found.fault == (
        "figures/a.png: SVG images are not shown, because they can hold scripts and addresses; save it as PNG"
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not an image of a known kind (PNG, JPEG, WebP, GIF)"),
        (b"hello", "not an image of a known kind (PNG, JPEG, WebP, GIF)"),
        (b"%PDF-1.7", "not an image of a known kind (PNG, JPEG, WebP, GIF)"),
        (b"II*\x00" + bytes(100), "not an image of a known kind (PNG, JPEG, WebP, GIF)"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "the image is damaged"),
        (b"GIF89a" + bytes(100), "the image is damaged"),
        (b"\xff\xd8\xff" + SVG, "the image is damaged"),
        (b"RIFF\x00\x00\x00\x00WEBP" + bytes(50), "the image is damaged"),
        (image_file(noise(300, 300))[:5000], "the image is damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20 << 20), "longer than 20 MB"),
    ],
)  # fmt: skip
def test_what_is_no_image_gets_one_sentence(content, sentence):
    assert read(content).fault == f"figures/a.png: {sentence}"


def test_what_is_hidden_behind_an_image_is_gone():
    assert b"<script>" not in read(plain() + b"<script>alert(1)</script>").picture.content


def test_hostile_images_use_up_the_allowance_and_the_others_are_named():
    """Of 1 s together the first image takes 5 s or so to decode; the second, then, is not read at all."""
    slow = wide_png(7_000, 7_000)
    found = list(read_images([("a.png", slow), ("b.png", plain())], allowance=Allowance(total_seconds=0.1)))
    assert found[0].picture is not None
    assert found[1].fault == "b.png: not read, because the images before it took too long"
