"""SipHash-2-4 against the 64 vectors that its authors publish with their reference implementation."""

import numpy as np
import polars as pl
import pytest

from sampling.siphash import BLOCK, hash_messages, hash_texts

# Key 00 01 .. 0f; entry n is the hash of the message 00 01 .. n-1. Appendix A of the paper prints that of 15 bytes.
PUBLISHED = """
726fdb47dd0e0e31 74f839c593dc67fd 0d6c8009d9a94f5a 85676696d7fb7e2d cf2794e0277187b7 18765564cd99a68d
cbc9466e58fee3ce ab0200f58b01d137 93f5f5799a932462 9e0082df0ba9e4b0 7a5dbbc594ddb9f3 f4b32f46226bada7
751e8fbc860ee5fb 14ea5627c0843d90 f723ca908e7af2ee a129ca6149be45e5 3f2acc7f57c29bdb 699ae9f52cbe4794
4bc1b3f0968dd39c bb6dc91da77961bd bed65cf21aa2ee98 d0f2cbb02e3b67c7 93536795e3a33e88 a80c038ccd5ccec8
b8ad50c6f649af94 bce192de8a85b8ea 17d835b85bbb15f3 2f2e6163076bcfad de4daaaca71dc9a5 a6a2506687956571
ad87a3535c49ef28 32d892fad841c342 7127512f72f27cce a7f32346f95978e3 12e0b01abb051238 15e034d40fa197ae
314dffbe0815a3b4 027990f029623981 cadcd4e59ef40c4d 9abfd8766a33735c 0e3ea96b5304a7d0 ad0c42d6fc585992
187306c89bc215a9 d4a60abcf3792b95 f935451de4f21df2 a9538f0419755787 db9acddff56ca510 d06c98cd5c0975eb
e612a3cb9ecba951 c766e62cfcadaf96 ee64435a9752fe72 a192d576b245165a 0a8787bf8ecb74b2 81b3e73d20b49b6f
7fa8220ba3b2ecea 245731c13ca42499 b78dbfaf3a8d83bd ea1ad565322a1a0b 60e61c23a3795013 6606d7e446282b93
6ca4ecb15c5f91e1 9f626da15c9625f3 e51b38608ef25f57 958a324ceb064572
"""
VECTORS = [int(word, 16) for word in PUBLISHED.split()]


def key(n_messages):
    halves = (int.from_bytes(bytes(range(start, start + 8)), "little") for start in (0, 8))
    return tuple(np.full(n_messages, half, dtype=np.uint64) for half in halves)


def test_every_length_of_message_has_its_published_hash():
    lengths = np.arange(64)
    data = b"".join(bytes(range(length)) for length in lengths)
    assert hash_messages(data, lengths, *key(64)).tolist() == VECTORS


def test_the_order_of_the_messages_and_their_neighbours_do_not_matter():
    lengths = np.random.default_rng(1).permutation(np.tile(np.arange(64), 3))
    data = b"".join(bytes(range(length)) for length in lengths)
    assert hash_messages(data, lengths, *key(192)).tolist() == [VECTORS[length] for length in lengths]


def test_more_messages_than_a_block_are_hashed_like_few():
    n_messages = BLOCK + 3
    hashes = hash_messages(bytes(range(15)) * n_messages, np.full(n_messages, 15), *key(n_messages))
    assert np.unique(hashes).tolist() == [VECTORS[15]]


def test_every_message_has_a_key_of_its_own():
    first, second = key(3)
    second[1] += np.uint64(1)
    hashes = hash_messages(bytes(range(15)) * 3, np.full(3, 15), first, second)
    assert hashes[0] == hashes[2] == VECTORS[15]
    assert hashes[1] != VECTORS[15]


def test_texts_are_hashed_by_their_utf8_bytes():
    texts = pl.Series([bytes(range(15)).decode(), "", "é"])
    hashes = hash_texts(texts, *key(3))
    assert hashes[:2].tolist() == [VECTORS[15], VECTORS[0]]
    assert hashes[2] == hash_messages("é".encode(), np.array([2]), *key(1))[0]


def test_nothing_to_hash_gives_no_hashes():
    assert hash_texts(pl.Series([], dtype=pl.String), *key(0)).size == 0
    assert hash_messages(b"", np.zeros(0, dtype=np.int64), *key(0)).size == 0


@pytest.mark.parametrize(
    ("data", "lengths", "n_keys", "reason"),
    [
        (b"ab", [1], 1, "must sum to the 2 bytes of data, got 1"),
        (b"ab", [3, -1], 2, "at least 0, got -1"),
        (b"ab", [1, 1], 1, "must be 2 keys"),
    ],
)
def test_messages_that_do_not_fit_their_bytes_or_keys_are_refused(data, lengths, n_keys, reason):
    with pytest.raises(ValueError, match=reason):
        hash_messages(data, np.array(lengths), *key(n_keys))


def test_a_missing_text_is_refused():
    with pytest.raises(ValueError, match="must not be missing, got 1 missing"):
        hash_texts(pl.Series(["a", None]), *key(2))
