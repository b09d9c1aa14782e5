"""Files that people bring in journeys: three topics, 36 documents, four runs, gold; the same as a company has them."""

import base64

TOPICS = "".join(f"t{number}\tNeed {number}\n" for number in range(3))
IDS = [f"t{topic}d{number}" for topic in range(3) for number in range(12)]
CORPUS = "".join(f'{{"_id": "{one}", "title": "Document {one}", "text": "Text of {one}"}}\n' for one in IDS)
QRELS = "".join(f"t{topic} 0 t{topic}d{number} {number}\n" for topic in range(3) for number in range(3))
SHEET_CSV = "url,headline,article\n" + "".join(f"{one},Document {one},Text of {one}\n" for one in IDS)
QUERIES_CSV = "id,query\n" + "".join(f"t{number},Need {number}\n" for number in range(3))
# One pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def run_lines(tag: str, first: int) -> str:
    """Return a run of ten documents of each topic."""
    return "".join(
        f"t{topic} Q0 t{topic}d{(first + rank) % 12} {rank + 1} {100 - rank} {tag}\n"
        for topic in range(3)
        for rank in range(10)
    )


RUNS = {tag: run_lines(tag, first) for first, tag in enumerate("abcd")}


def text_file(name: str, text: str) -> dict[str, object]:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
