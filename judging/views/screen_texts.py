"""Every sentence that the scripts of the judging screen say, in the reader's language.

The page brings them along (`{{ texts|json_script }}`), so that the screen can speak without a connection. A sentence
with a number comes in all its forms; static/judging/texts.js chooses one by `Intl.PluralRules`.
"""

import functools
from typing import Any

from django.utils.translation import get_language, gettext, ngettext

from judging.services.refusal_texts import TEXTS

# Whatever distinguishes the forms of a language shows in the numbers up to here.
NUMBERS = 111


def screen_texts() -> dict[str, Any]:
    """Return the texts for the page, in the language that is active."""
    return _texts(get_language() or "en")


@functools.cache
def _texts(language: str) -> dict[str, Any]:
    by_number = [_plural_sentences(n) for n in range(NUMBERS)]
    forms = [dict(items) for items in dict.fromkeys(tuple(texts.items()) for texts in by_number)]
    return {
        "language": language,
        "plain": _plain(),
        "forms": forms,
        "form_of": [forms.index(texts) for texts in by_number],
        "refusals": {name: [str(heading), str(advice)] for name, (heading, advice) in TEXTS.items()},
    }


def _plain() -> dict[str, str]:
    return {
        "document": gettext("Document"),
        "document titled": gettext("Document: %(title)s"),
        "new topic": gettext("New topic: %(title)s."),
        "comment": gettext("Comment"),
        "you": gettext("You"),
        "asked": gettext("Sent. The answer will appear here."),
        "comment added": gettext("Comment added"),
        "your comment": gettext("Your comment: %(comment)s"),
        "you gave": gettext("You gave %(grade)s."),
        "you could not judge": gettext("You could not judge it: %(reason)s."),
        "choose for the comment": gettext("Choose a grade to store the new comment with it."),
        "choose again": gettext("Choose again to change it."),
        "no such grade": gettext("There is no grade %(grade)s."),
        "judged in another tab": gettext("You have already judged that document in another tab."),
        "nothing to go back to": gettext("There is no judgment of yours to go back to."),
        "nothing further back": gettext("This is the oldest judgment that can be shown."),
        "highlighted": gettext("The topic's words are highlighted."),
        "not highlighted": gettext("The topic's words are not highlighted."),
        "looking": gettext("Looking for your next document …"),
        "no work": gettext("No more work for you right now"),
        "no work text": gettext("Thank you. New documents may come later."),
        "quota": gettext("That was your share"),
        "quota text": gettext("Thank you. You have judged all documents that were meant for you."),
        "busy": gettext("The server is busy …"),
        "waiting": gettext("Waiting for the connection …"),
        "goes on by itself": gettext("Judging continues by itself as soon as possible."),
        "saving": gettext("Saving…"),
        "still saving": gettext("Still saving…"),
        "no connection": gettext("No connection."),
        "logged out": gettext("You are logged out."),
        "logged out text": gettext("Log in again in another tab, or load this page; nothing is lost."),
        "answered": gettext("The server answered with status %(status)s."),
        "session judged": gettext("Judged in this session"),
        "session time": gettext("Active time"),
        "session median": gettext("Usual time per document"),
        "session unsent": gettext("Still to be sent"),
        "none yet": gettext("none yet"),
        "less than a minute": gettext("less than a minute"),
        "break": gettext("You have judged for %(duration)s. Rested eyes judge better."),
    }


def _plural_sentences(n: int) -> dict[str, str]:
    """Return the sentences that depend on a number, as they are for n; `%(n)s` stands for it."""
    return {
        "back": ngettext("%(n)s document back.", "%(n)s documents back.", n),
        "set aside": ngettext(
            "%(n)s judgment could not be stored; it is kept in this browser.",
            "%(n)s judgments could not be stored; they are kept in this browser.",
            n,
        ),
        "safe": ngettext(
            "Your judgment is safe in this browser.", "Your %(n)s judgments are safe in this browser.", n
        ),
        "saved": ngettext("Saved %(n)s", "Saved %(n)s", n),
        "not saved": ngettext("Not saved: %(n)s kept here", "Not saved: %(n)s kept here", n),
        "offline": ngettext(
            "Offline: %(n)s waiting, will be sent", "Offline: %(n)s waiting, will be sent", n
        ),
        "server busy": ngettext(
            "The server is busy; %(n)s waiting, will be sent",
            "The server is busy; %(n)s waiting, will be sent",
            n,
        ),
        "judged": ngettext("%(n)s judged", "%(n)s judged", n),
        "judged of": ngettext("%(n)s of %(goal)s judged", "%(n)s of %(goal)s judged", n),
        "unsent": ngettext("%(n)s, kept in this browser", "%(n)s, kept in this browser", n),
        "minutes": ngettext("%(n)s minute", "%(n)s minutes", n),
        "seconds": ngettext("%(n)s second", "%(n)s seconds", n),
    }
