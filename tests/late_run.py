"""A run that came after the draw of the small campaign.

The campaign is drawn evenly over its 42 pairs, 20 expected: every pair has the chance p = 20/42.
"""

from small_campaign import (
    DOCUMENTS,
    TOPICS,
    doc_id,
)

from judging.services.files import import_documents, import_runs

BUDGET = 20

LATE = [4, 5, 6, 7, 8, 9, 10, 11, 14, 15]  # of every topic, in this order; the last two are not in the frame


def add_late_run(collection, folder, *, with_documents=True):
    """Import a run whose last two documents a topic nobody returned before."""
    if with_documents:
        new = [doc_id(topic, d) for topic in range(len(TOPICS)) for d in LATE if d >= DOCUMENTS]
        path = folder / "new.jsonl"
        path.write_text("".join(f'{{"_id": "{document}", "text": "Text"}}\n' for document in new))
        import_documents(collection=collection, source=path, name="new.jsonl")
    lines = [
        f"{topic_id} Q0 {doc_id(topic, d)} {rank} {100 - rank} late\n"
        for topic, topic_id in enumerate(TOPICS)
        for rank, d in enumerate(LATE, start=1)
    ]
    (folder / "late.run").write_text("".join(lines))
    import_runs(collection=collection, files=[(folder / "late.run", "late.run")])
