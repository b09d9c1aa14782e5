"""Scores with gold in another collection, for campaigns that calibrate theirs on it.

56 documents are within rank 10 of its two runs, 14 a topic; all have gold, document n grade n mod 4.
"""

import io
import uuid

from page_campaign import N_DOCUMENTS, N_TOPICS, make_collection
from small_campaign import judge_all

from judging.services import campaigns
from judging.services.scores import import_scores
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import User

N_GOLD, DEPTH = 56, 10


def score_there(topic, document):
    """Return what the program says: more of grades 2 and 3, with noise that no two documents share."""
    return round(0.1 + 0.2 * (document % 4) + 0.01 * ((7 * document + 3 * topic) % 20), 2)


def score_lines(score=score_there, n_documents=N_DOCUMENTS):
    return "".join(f"t{t}\td{d:02}\t{score(t, d)}\n" for t in range(N_TOPICS) for d in range(n_documents))


def add_score_lines(collection, lines, name="model"):
    import_scores(collection=collection, source=io.BytesIO(lines.encode()), name="scores.tsv", list_name=name)


def gold_collection(*, name="model", score=score_there, n_documents=N_DOCUMENTS, n_runs=2):
    """Return a collection with gold answers, runs and scores of that name."""
    made = make_collection(n_runs)
    add_score_lines(made, score_lines(score, n_documents), name)
    return made


def gold_campaign(tier="gold", collection=None):
    """Return a campaign of 56 drawn documents, judged by one assessor of that tier: document n is n mod 4 mod 3."""
    made = campaigns.create_campaign(
        collection=collection or gold_collection(),
        name=f"campaign {uuid.uuid4()}",
        user=None,
        grades=campaigns.DEFAULT_GRADES,
        gold_check_rate=0.0,
    )
    draw(campaign=made, design=Design("pool", (), "P@5", DEPTH, N_GOLD), seed=7)
    user = User.objects.create(username=f"{tier}-{uuid.uuid4().hex[:6]}")
    assessor = campaigns.add_assessor(campaign=made, user=user, tier=tier)
    campaigns.open_campaign(campaign=made, actor=None)
    judge_all(made, [assessor], grade=lambda slot, place: grade_there(slot))
    return made


def grade_there(slot):
    return int(slot.item.document.doc_id[1:]) % 4 % 3
