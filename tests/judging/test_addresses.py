"""Which uploaded file an address of a document means."""

import pytest

from judging.addresses import image_path, path_beside


@pytest.mark.parametrize(
    ("doc_id", "address", "path"),
    [
        ("site/pages/a.html", "b.png", "site/pages/b.png"),
        ("site/pages/a.html", "./b.png", "site/pages/b.png"),
        ("site/pages/a.html", "../b.png", "site/b.png"),
        ("site/pages/a.html", "../../b.png", "b.png"),
        ("site/pages/a.html", "../../../b.png", ""),
        ("site/pages/a.html", "%2e%2e/b.png", "site/b.png"),
        ("site/pages/a.html", "..%2F..%2F..%2Fetc/passwd", ""),
        ("site/pages/a.html", "..\\b.png", "site/b.png"),
        ("site/pages/a.html", "/b.png", "b.png"),
        ("site/pages/a.html", "/../b.png", ""),
        ("a.html", "figures/b.png", "figures/b.png"),
        ("d1", "figures/b.png", "figures/b.png"),
        ("a.html", "b%20c.png", "b_c.png"),
        ("a.html", "b c.png", "b_c.png"),
        ("my_folder/a.html", "b.png", "my_folder/b.png"),
        ("a.html", "b.png?v=2#x", "b.png"),
        ("a.html", "b%3Fv=2.png", "b?v=2.png"),
        ("a.html", "u\u0308.png", "\u00fc.png"),
        ("a.html", "%C3%BC.png", "\u00fc.png"),
        ("a.html", "https://a.example/b.png", ""),
        ("a.html", "//a.example/b.png", ""),
        ("a.html", "data:image/png;base64,AA", ""),
        ("a.html", "file:///etc/passwd", ""),
        ("a.html", "", ""),
        ("a.html", "#x", ""),
        ("a.html", "%00.png", "_.png"),
    ],
)  # fmt: skip
def test_an_address_means_a_file_beside_the_document(doc_id, address, path):
    assert path_beside(doc_id, address) == path


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("figures/my plot.png", "figures/my_plot.png"),
        ("a/./b//c.png", "a/b/c.png"),
        ("a\\b.png", "a/b.png"),
        ("../a.png", ""),
        ("a\u202eb.png", "a_b.png"),
        ("u\u0308.png", "\u00fc.png"),
    ],
)
def test_an_uploaded_image_is_found_by_the_path_that_a_document_names(name, path):
    assert image_path(name) == path
    assert image_path(path) == path
