from django.db import migrations, models


# The values of topics are in the result of the job that was asked for them, with their range; an older one has none.
OUTSIDE = """jsonb_path_exists(result, '$.topics[*].difference ? (
    @.value > $.range || @.high > $.range || @.value < -$.range || @.low < -$.range)')
OR jsonb_path_exists(result, '$.topics[*].naive ? (@.value > $.range || @.value < -$.range)')
OR jsonb_path_exists(result, '$.topics[*].mean ? (
    @.value > $.range || @.high > $.range || @.value < 0 || @.low < 0)')"""


class Migration(migrations.Migration):
    """The range of every estimate, what it was before it was cut off there, and what carries it; NULL in older rows."""

    dependencies = [
        ("analytics", "0008_numbers_by_gold_judges"),
        ("judging", "0010_judging_order"),
        ("touchstone", "0003_user_language"),
    ]

    operations = [
        migrations.AddField(
            model_name="estimate",
            name="gold_share",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="estimate",
            name="judged_share",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="estimate",
            name="n_positive",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="estimate",
            name="range_high",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="estimate",
            name="range_low",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="estimate",
            name="unbounded_high",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="estimate",
            name="unbounded_low",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="estimate",
            name="unbounded_value",
            field=models.FloatField(null=True),
        ),
        migrations.AddConstraint(
            model_name="estimate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("range_high", None),
                        ("range_low", None),
                        ("unbounded_high", None),
                        ("unbounded_low", None),
                        ("unbounded_value", None),
                    ),
                    models.Q(
                        ("range_high__isnull", False),
                        ("range_low__isnull", False),
                        ("value__isnull", False),
                        ("range_high__lt", 1e300),
                        ("range_low__gt", -1e300),
                        ("range_low__lte", models.F("range_high")),
                        models.Q(
                            ("value__isnull", True),
                            models.Q(
                                ("value__gte", models.F("range_low")), ("value__lte", models.F("range_high"))
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            ("low__isnull", True),
                            models.Q(
                                ("low__gte", models.F("range_low")), ("low__lte", models.F("range_high"))
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            ("high__isnull", True),
                            models.Q(
                                ("high__gte", models.F("range_low")), ("high__lte", models.F("range_high"))
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            ("topics_low__isnull", True),
                            models.Q(
                                ("topics_low__gte", models.F("range_low")),
                                ("topics_low__lte", models.F("range_high")),
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            ("topics_high__isnull", True),
                            models.Q(
                                ("topics_high__gte", models.F("range_low")),
                                ("topics_high__lte", models.F("range_high")),
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            ("always_low__isnull", True),
                            models.Q(
                                ("always_low__gte", models.F("range_low")),
                                ("always_low__lte", models.F("range_high")),
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            ("always_high__isnull", True),
                            models.Q(
                                ("always_high__gte", models.F("range_low")),
                                ("always_high__lte", models.F("range_high")),
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            models.Q(("unbounded_value", None), ("value", None)),
                            models.Q(
                                ("unbounded_value__gt", -1e300),
                                ("unbounded_value__isnull", False),
                                ("unbounded_value__lt", 1e300),
                                ("value__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            models.Q(("low", None), ("unbounded_low", None)),
                            models.Q(
                                ("low__isnull", False),
                                ("unbounded_low__gt", -1e300),
                                ("unbounded_low__isnull", False),
                                ("unbounded_low__lt", 1e300),
                            ),
                            _connector="OR",
                        ),
                        models.Q(
                            models.Q(("high", None), ("unbounded_high", None)),
                            models.Q(
                                ("high__isnull", False),
                                ("unbounded_high__gt", -1e300),
                                ("unbounded_high__isnull", False),
                                ("unbounded_high__lt", 1e300),
                            ),
                            _connector="OR",
                        ),
                    ),
                    _connector="OR",
                ),
                name="analytics_estimate_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="estimate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("range_low", None),
                    ("topics_low", None),
                    models.Q(
                        ("low__isnull", False),
                        ("topics_high__isnull", False),
                        ("topics_high__gte", models.F("high")),
                        ("topics_low__lte", models.F("low")),
                    ),
                    _connector="OR",
                ),
                name="analytics_estimate_topics_wider",
            ),
        ),
        migrations.AddConstraint(
            model_name="estimate",
            constraint=models.CheckConstraint(
                condition=models.Q(("n_positive", None), ("n_positive__lte", models.F("n")), _connector="OR"),
                name="analytics_estimate_positive",
            ),
        ),
        migrations.AddConstraint(
            model_name="estimate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("gold_share", None), ("judged_share", None)),
                    models.Q(
                        ("gold_share__isnull", False),
                        ("judged_share__isnull", False),
                        ("run_b", None),
                        ("gold_share__gte", 0),
                        ("gold_share__lte", models.F("judged_share")),
                        ("judged_share__lte", 1),
                    ),
                    _connector="OR",
                ),
                name="analytics_estimate_shares",
            ),
        ),
        migrations.RunSQL(
            f"""ALTER TABLE touchstone_job ADD CONSTRAINT analytics_topics_within_range CHECK (
            kind <> 'analysis' OR jsonb_typeof(result -> 'range') IS DISTINCT FROM 'number' OR NOT ({OUTSIDE}))""",
            "ALTER TABLE touchstone_job DROP CONSTRAINT analytics_topics_within_range",
        ),
    ]
