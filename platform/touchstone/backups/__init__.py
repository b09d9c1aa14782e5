"""Backups: the database and the files that its rows name, checked byte by byte, and the way back to any second.

A folder of backups holds

    2026-11-22T140000Z/      one backup: base/ (a copy of the cluster) or database.dump, and manifest.json, written last
    files/ab/ab12...         the files of all backups by their SHA-256: a file that two backups have is there once
    files.jsonl              which file was copied when, for moments between two backups
    wal/                     what PostgreSQL wrote since, segment by segment: with it a backup leads to any later second

It holds all that the database holds, so secrets of webhooks and log-ins too, but not SECRET_KEY. A backup without
manifest.json was not completed and counts for nothing.
"""


class BackupError(Exception):
    """A backup cannot be made, checked or restored; the sentence says why and what to do."""
