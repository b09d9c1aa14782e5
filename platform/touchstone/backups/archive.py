"""Backups without end: the log as PostgreSQL writes it, new files every minute, and a whole backup a day."""

import contextlib
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from touchstone.backups import BackupError, postgres
from touchstone.backups.folder import Backups
from touchstone.backups.making import STATE, copy_files, refuse_another
from touchstone.backups.objects import ObjectStore

SLOT = "touchstone_backup"
DAILY = timedelta(days=1)
IS_LIMITED = "SELECT current_setting('max_slot_wal_keep_size') <> '-1'"
# It keeps the log back from now on; one made by pg_receivewal does so only when it is first received.
MAKE_SLOT = "SELECT pg_create_physical_replication_slot('touchstone_backup', true)"
SEGMENT_SIZE = "SELECT pg_size_bytes(current_setting('wal_segment_size'))"
IS_LOST = "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = 'touchstone_backup'"
FILES_EVERY = 60.0  # seconds
AFTER_A_FAULT = 600.0
AT_REST = 2.0  # a file that is still being written is younger; its row is not committed

logger = logging.getLogger(__name__)


class Archive:
    """Keeps a folder of backups up to date; `step` is called again and again, and waits only for a backup."""

    def __init__(
        self,
        backups: Backups,
        address: str,
        media: Path | ObjectStore,
        *,
        back_up: Callable[[], Path],
        keep: int,
        is_receiving: Callable[[], None] = lambda: None,
    ) -> None:
        self.backups, self.address, self.media = backups, address, media
        self.back_up, self.keep, self.is_receiving = back_up, keep, is_receiving
        self.receiver: subprocess.Popen[bytes] | None = None
        self._known: dict[str, tuple[int, int]] = {}
        self._files_at = self._receiver_at = self._backup_at = 0.0

    def step(self) -> None:
        """Do what is due. A fault is logged, and tried again later: the other duties go on."""
        self._keep_up()
        now = time.monotonic()
        if now >= self._backup_at:
            self._backup_at = now + FILES_EVERY
            if not self._try("no backup was made", self._back_up_if_due):
                self._backup_at = time.monotonic() + AFTER_A_FAULT

    def _keep_up(self) -> None:
        now = time.monotonic()
        if now >= self._receiver_at and (self.receiver is None or self.receiver.poll() is not None):
            self._receiver_at = now + 10
            self._try("the log is not received", self._receive)
        if now >= self._files_at:
            self._files_at = now + FILES_EVERY
            self._try("new files were not copied", self._copy_new_files)

    @contextlib.contextmanager
    def _keeping_up(self) -> Iterator[None]:
        """Do the short duties in a thread: a large backup takes hours, and the log must be received meanwhile."""
        is_over = threading.Event()

        def work() -> None:
            while not is_over.wait(1):
                self._keep_up()

        thread = threading.Thread(target=work, name="archive", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(10)

    def stop(self) -> None:
        if self.receiver is not None and self.receiver.poll() is None:
            self.receiver.terminate()
            self.receiver.wait(10)

    def _try(self, words: str, work: Callable[[], None]) -> bool:
        try:
            work()
        except (BackupError, OSError) as error:
            logger.error("%s: %s", words, error)
            return False
        return True

    def _receive(self) -> None:
        """Start what receives the log; its place in the log is a slot, so that nothing is thrown away before."""
        number, system, *_ = postgres.ask(self.address, STATE)
        refuse_another(self.backups, system)
        tool = postgres.tool("pg_receivewal", number // 10_000)
        target = f"--dbname={postgres.without_password(self.address)}"
        options = [target, "--no-password", f"--slot={SLOT}"]
        is_lost = postgres.ask(self.address, IS_LOST)
        if is_lost != (False,):
            # No row: a first start, or a restored database. Lost: nobody received until 2 GB had been written.
            # NULL: a slot that keeps nothing back, because nobody ever received through it.
            # The log has a gap or another future: it begins anew, with a whole backup.
            if postgres.ask(self.address, IS_LIMITED) != (True,):
                raise BackupError(
                    "without a limit, a log that nobody receives would fill the database's disk: "
                    "ALTER SYSTEM SET max_slot_wal_keep_size = '2GB'; SELECT pg_reload_conf()"
                )
            if is_lost:
                postgres.run([tool, *options, "--drop-slot"], self.address)
            self.backups.set_log_aside()
            self._backup_at = 0.0
            postgres.ask(self.address, MAKE_SLOT)
        self.backups.wal.mkdir(mode=0o700, exist_ok=True)
        (size,) = postgres.ask(self.address, SEGMENT_SIZE)
        self.backups.drop_torn_segment(size)
        self.receiver = subprocess.Popen(
            [tool, *options, f"--directory={self.backups.wal}", "--status-interval=5", "--no-loop"],
            env=postgres.environment(self.address),
            stdin=subprocess.DEVNULL,
        )

    def _copy_new_files(self) -> None:
        known = dict(self._known)
        self.backups.keep_between(lambda: copy_files(self.backups, self.media, known, AT_REST))
        self._known = known  # only what is in the journal: after a fault all of it is copied again
        if self.receiver is not None and self.receiver.poll() is None:
            self.is_receiving()

    def _back_up_if_due(self) -> None:
        if not self._is_due():
            return
        with self.backups.alone():
            with self._keeping_up():
                self.back_up()
            self.backups.remove_old(self.keep)

    def _is_due(self) -> bool:
        newest = self.backups.newest(with_log=True)
        if newest is None or self.backups.has_gap() or newest.end_time < datetime.now(UTC) - DAILY:
            return True
        # A database that was restored has a history of its own: what was written since needs a backup of its own.
        _, system, timeline, *_ = postgres.ask(self.address, STATE)
        return (newest.system, newest.timeline) != (system, timeline)
