"""A campaign of a million judgments in a database, made in half a minute: what Python cannot do row by row is SQL.

The runs, the draw and its frame are the product's own. Items, slots, leases, judgments, gold checks and two audits are
written by COPY and INSERT ... SELECT with the triggers off, in the shape in which the product's services leave them.
A judge gives the true grade with probability .75, else a neighbour of it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

GRADES, DEPTH, ITEMS_A_TOPIC, CANDIDATES = 4, 100, 1000, 1400
RIGHT, CHECKS_A_TOPIC, ANSWERS_A_CHECK = 0.75, 8, 5
AUDITED = (400.0, 1000.0)  # expected items of the first audit, and of both
AUDIT_SEED, LEFT = 77, 50  # judgments that are still wanted

LAY_OUT = """
CREATE TEMPORARY TABLE made ON COMMIT DROP AS
SELECT d.*, gen_random_uuid() AS item_id, t.id AS topic_pk, x.id AS document_pk
  FROM drawn d
  JOIN judging_topic t ON t.collection_id = %(collection)s AND t.topic_id = d.topic_id
  JOIN judging_document x ON x.collection_id = %(collection)s AND x.doc_id = d.doc_id
 ORDER BY d.place;
INSERT INTO judging_item (id, campaign_id, topic_id, document_id)
SELECT item_id, %(campaign)s, topic_pk, document_pk FROM made;
INSERT INTO sampling_drawentry (draw_id, item_id, inclusion_probability, times)
SELECT %(draw)s, item_id, probability, 1 FROM made WHERE kind = 'judge';
INSERT INTO judging_goldanswer (topic_id, document_id, grade, source, created_at)
SELECT topic_pk, document_pk, truth, 'benchmark', clock_timestamp() FROM made WHERE kind = 'check';
INSERT INTO judging_campaigntopic (campaign_id, topic_id, team, check_rate)
SELECT DISTINCT %(campaign)s::uuid, topic_pk, '', 0.01 FROM made
"""
# `given`: place, number, purpose, assessor_id, grade, in the order in which they were given.
JUDGE = """
CREATE TEMPORARY TABLE said ON COMMIT DROP AS
SELECT g.*, m.item_id, m.topic_pk, gen_random_uuid() AS token,
       timestamptz '2026-01-01' + g.ordinal * interval '1 second' AS at,
       nextval('judging_slot_id_seq') AS slot_id
  FROM given g JOIN made m USING (place) ORDER BY g.ordinal;
INSERT INTO judging_slot (item_id, purpose, number, state, campaign_id, topic_id, position)
SELECT item_id, purpose, number, 'open', %(campaign)s, topic_pk, (hashint8(ordinal) & 1073741823)
  FROM said WHERE ordinal <= %(left)s;
DELETE FROM said WHERE ordinal <= %(left)s;
INSERT INTO judging_slot (id, item_id, purpose, number, state, assessor_id, token, leased_at, campaign_id, topic_id,
                          position)
SELECT slot_id, item_id, purpose, number, 'done', assessor_id, token, at, %(campaign)s, topic_pk,
       (hashint8(ordinal) & 1073741823)
  FROM said;
INSERT INTO judging_lease (token, slot_id, assessor_id, leased_at) SELECT token, slot_id, assessor_id, at FROM said;
INSERT INTO judging_judgment (item_id, assessor_id, sequence, grade, slot_id, lease_token, client_token,
                              active_milliseconds, document_version, created_at)
SELECT item_id, assessor_id, 1, grade, slot_id, token, gen_random_uuid(), 2000 + (hashint8(ordinal) & 32767), 1,
       at + interval '9 seconds'
  FROM said ORDER BY ordinal
"""
INDEXES = """
SELECT indexrelid::regclass::text, replace(pg_get_indexdef(indexrelid), '%', '%%') FROM pg_index
 WHERE indrelid IN ('judging_judgment'::regclass, 'judging_slot'::regclass, 'judging_lease'::regclass)
   AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = indexrelid AND k.contype IN ('p', 'u'))
"""
AUDIT = """
INSERT INTO sampling_auditentry (audit_id, item_id, inclusion_probability, selected)
SELECT %(audit)s, m.item_id, e.probability, e.selected FROM eligible e JOIN made m USING (place)
"""


def make(folder: Path, *, n_items: int, n_each: int, n_assessors: int, n_runs: int, seed: int) -> Any:
    """Return the campaign: so many items expected, each with so many judgments."""
    from django.db import connection, transaction

    from judging.services.campaigns import open_campaign

    rng = np.random.default_rng(seed)
    campaign, assessors, gold = _campaign(folder, n_items, n_each, n_assessors, n_runs, rng)
    draw, frame = _draw(campaign, n_items, seed)
    truth = rng.choice(GRADES, size=frame.height, p=[0.7, 0.15, 0.1, 0.05])
    drawn = frame["drawn_in"].to_numpy() > 0
    checks = _checks(frame, drawn, rng)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = 'replica'; SET LOCAL work_mem = '256MB'")
        indexes = _without_indexes(cursor)
        places = np.concatenate([np.flatnonzero(drawn), checks])
        table = frame[places].select("topic_id", "doc_id", probability="batch_1").with_columns(
            place=pl.Series(places), truth=pl.Series(truth[places]),
            kind=pl.Series(np.repeat(["judge", "check"], [int(drawn.sum()), checks.size])),
        )  # fmt: skip
        _copy(cursor, "drawn", table, "text text double bigint integer text")
        keys = {"campaign": campaign.pk, "collection": campaign.collection_id, "draw": draw.pk, "left": LEFT}
        _run(cursor, LAY_OUT, keys)
        audited = _audits(cursor, campaign, frame, np.flatnonzero(drawn))
        given = _given(places, int(drawn.sum()), truth, assessors, n_each, rng)
        order = rng.permutation(given.height)
        judgments = pl.concat([given[order], _gold_given(audited, truth, gold)])
        judgments = judgments.with_columns(ordinal=pl.int_range(1, judgments.height + 1, eager=True))
        _copy(cursor, "given", judgments, "bigint integer text bigint integer bigint")
        _run(cursor, JUDGE, keys)
        _run(cursor, indexes, {})
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    open_campaign(campaign=campaign, actor=None)
    return campaign


def _without_indexes(cursor: Any) -> str:
    """Drop the indexes of what is written most; return the statements that make them, faster than row by row."""
    cursor.execute(INDEXES)
    found = cursor.fetchall()
    _run(cursor, ";".join(f"DROP INDEX {name}" for name, _ in found), {})
    return ";".join(["SET LOCAL maintenance_work_mem = '256MB'", *(made for _, made in found)])


def _run(cursor: Any, statements: str, keys: dict[str, Any]) -> None:
    for statement in statements.split(";"):
        cursor.execute(statement, keys)


def _copy(cursor: Any, table: str, frame: pl.DataFrame, kinds: str) -> None:
    """Put a frame into a temporary table of that name."""
    kinds = kinds.replace("double", "double_precision")
    columns = ", ".join(
        f"{name} {kind.replace('_', ' ')}" for name, kind in zip(frame.columns, kinds.split(), strict=True)
    )
    cursor.execute(f"CREATE TEMPORARY TABLE {table} ({columns}) ON COMMIT DROP")
    with cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        copy.write(frame.write_csv(include_header=False))
    cursor.execute(f"ANALYZE {table}")


def _campaign(
    folder: Path, n_items: int, n_each: int, n_assessors: int, n_runs: int, rng: np.random.Generator
) -> tuple[Any, np.ndarray, int]:
    """Return a campaign without items on a collection with its runs, the keys of its assessors, and the gold one's."""
    from django.db import connection

    from judging.models import Assessor, Campaign, Collection
    from judging.services.campaigns import create_campaign
    from judging.services.files import import_runs, import_topics
    from touchstone.models import User

    collection = Collection.objects.create(name="large")
    topics = [f"{number:04d}" for number in range(1, max(5, n_items // ITEMS_A_TOPIC) + 1)]
    listed = folder / "topics.tsv"
    listed.write_text("".join(f"{name}\t{name}\n" for name in topics))
    import_topics(collection=collection, source=listed, name=listed.name)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO judging_document (collection_id, doc_id, title, text, version) "
            "SELECT %s, format('clueweb09-en%%s-%%s', lpad(t::text, 4, '0'), lpad(d::text, 5, '0')), 'A document', "
            "repeat('Some words of a document. ', 20), 1 FROM generate_series(1, %s) t, generate_series(1, %s) d",
            [collection.pk, len(topics), CANDIDATES],
        )
        cursor.execute("VACUUM ANALYZE judging_document")
    import_runs(collection=collection, files=_run_files(folder, topics, n_runs, rng))
    campaign = create_campaign(
        collection=collection,
        name="large",
        user=None,
        grades=[(grade, f"grade {grade}", float(grade)) for grade in range(GRADES)],
        judgments_per_item=n_each,
    )
    users = User.objects.bulk_create(User(username=f"judge{n}") for n in range(n_assessors + 1))
    people = Assessor.objects.bulk_create(
        Assessor(campaign=campaign, user=user, tier="bronze" if n < n_assessors else "gold")
        for n, user in enumerate(users)
    )
    keys = np.array([person.pk for person in people])
    return Campaign.objects.get(pk=campaign.pk), keys[:-1], int(keys[-1])


def _run_files(
    folder: Path, topics: list[str], n_runs: int, rng: np.random.Generator
) -> list[tuple[Path, str]]:
    """Write run files: what all systems see, what a family of five shares, and noise of a run's own."""
    best = np.empty((n_runs, len(topics), DEPTH), dtype=np.int64)
    for topic in range(len(topics)):
        quality = 0.8 * rng.standard_normal(CANDIDATES)
        family = np.repeat(rng.standard_normal((-(-n_runs // 5), CANDIDATES)), 5, axis=0)[:n_runs]
        score = quality + family + 0.7 * rng.standard_normal((n_runs, CANDIDATES))
        best[:, topic] = np.argsort(-score, axis=1)[:, :DEPTH] + 1
    files = []
    for run in range(n_runs):
        name = f"system{run:03d}"
        frame = pl.DataFrame(
            {
                "topic": np.repeat(topics, DEPTH),
                "q0": ["Q0"] * (len(topics) * DEPTH),
                "number": best[run].ravel(),
                "rank": np.tile(np.arange(1, DEPTH + 1), len(topics)),
                "score": np.tile(np.arange(DEPTH, 0, -1), len(topics)),
            }
        )
        document = pl.format("clueweb09-en{}-{}", "topic", pl.col("number").cast(pl.String).str.zfill(5))
        path = folder / f"{name}.run"
        frame.select("topic", "q0", document.alias("document"), "rank", "score", tag=pl.lit(name)).write_csv(
            path, include_header=False, separator=" "
        )
        files.append((path, path.name))
    return files


def _draw(campaign: Any, n_items: int, seed: int) -> tuple[Any, pl.DataFrame]:
    from sampling.frames import load_frame
    from sampling.questions import Design
    from sampling.services.drawing import record_draw

    design = Design("pool", (), measure="DCG@10", depth=DEPTH, budget=n_items)
    made = record_draw(campaign=campaign, design=design, seed=seed)
    return made, load_frame(made)


def _checks(frame: pl.DataFrame, drawn: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return some places of every topic that were not drawn: its gold checks."""
    left = pl.DataFrame({"topic": frame["topic_id"], "place": np.arange(frame.height)}).filter(
        pl.Series(~drawn)
    )
    left = left.with_columns(number=pl.Series(rng.random(left.height))).sort("number")
    return left.group_by("topic").head(CHECKS_A_TOPIC)["place"].sort().to_numpy()


def _given(
    places: np.ndarray,
    n_drawn: int,
    truth: np.ndarray,
    assessors: np.ndarray,
    n_each: int,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Return the judgments of different assessors at every place."""
    each = np.repeat([n_each, ANSWERS_A_CHECK], [n_drawn, places.size - n_drawn])
    place = np.repeat(places, each)
    number = np.arange(place.size) - np.repeat(np.cumsum(each) - each, each)
    first, step = (
        rng.integers(0, assessors.size, places.size),
        rng.integers(1, assessors.size // 8, places.size),
    )
    who = assessors[(np.repeat(first, each) + number * np.repeat(step, each)) % assessors.size]
    shift = rng.choice([-1, 0, 1], size=place.size, p=[(1 - RIGHT) / 2, RIGHT, (1 - RIGHT) / 2])
    grade = np.clip(truth[place] + shift, 0, GRADES - 1)
    purpose = np.repeat(np.repeat(["judge", "check"], [n_drawn, places.size - n_drawn]), each)
    return pl.DataFrame(
        {"place": place, "number": number + 1, "purpose": purpose, "assessor_id": who, "grade": grade}
    )


def _gold_given(audited: np.ndarray, truth: np.ndarray, gold: int) -> pl.DataFrame:
    n = audited.size
    return pl.DataFrame(
        {
            "place": audited,
            "number": np.ones(n, dtype=np.int64),
            "purpose": ["audit"] * n,
            "assessor_id": np.full(n, gold),
            "grade": truth[audited],
        }
    )


def _audits(cursor: Any, campaign: Any, frame: pl.DataFrame, drawn: np.ndarray) -> np.ndarray:
    """Record two nested audits of all drawn items; return the places that they select."""
    from sampling.draws import permanent_random_numbers
    from sampling.models import Audit

    pairs = frame[drawn]
    numbers = permanent_random_numbers(pairs["topic_id"], pairs["doc_id"], AUDIT_SEED)
    prior = pairs["prior"].to_numpy()
    selected = np.zeros(drawn.size, dtype=bool)
    for sequence, expected in enumerate(AUDITED, start=1):
        pi = np.minimum(1.0, expected * (0.2 / drawn.size + 0.8 * prior / prior.sum()))
        selected = numbers < pi
        made = Audit.objects.create(
            campaign=campaign,
            sequence=sequence,
            seed=AUDIT_SEED,
            expected_in_total=expected,
            n_eligible=drawn.size,
            n_selected=int(selected.sum()),
        )
        cursor.execute("DROP TABLE IF EXISTS pg_temp.eligible")
        table = pl.DataFrame({"place": drawn, "probability": pi, "selected": selected})
        _copy(cursor, "eligible", table, "bigint double boolean")
        _run(cursor, AUDIT, {"audit": made.pk})
    return drawn[selected]
