from django.apps import AppConfig


class TouchstoneConfig(AppConfig):
    name = "touchstone"

    def ready(self) -> None:
        from touchstone import access, counters, logins, logs, readers

        logs.Lines.count = staticmethod(lambda: counters.add("suppressed log lines"))
        logins.keep_record()
        access.watch_accounts()
        readers.watch_log_ins()
