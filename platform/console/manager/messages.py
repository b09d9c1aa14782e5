"""What assessors ask, and the answers: a page of *People*, and a part of an item's page."""

import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.forms.campaigns import MessageForm
from judging.models import Campaign, Message
from judging.services import messages as letters
from judging.services.access import managers_only
from judging.services.errors import QuestionSecret
from touchstone.models import user_of

SHOWN, SHOWN_IN_THREAD = 20, 50


@managers_only
def all_messages(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Every question that waits, the oldest first, and the newest messages."""
    row = get_object_or_404(Campaign, pk=campaign_id)
    waiting = list(_light(letters.open_questions(row))[:SHOWN])
    newest = Message.objects.filter(assessor__campaign=row).select_related("assessor__user", "sender")
    context = {
        "campaign": row,
        "questions": waiting,
        "newest": list(
            _light(newest.select_related("item__topic", "item__document")).order_by("-id")[:SHOWN]
        ),
        "shown": SHOWN,
    }
    return render(request, "console/manager/messages.html", context)


@managers_only
def thread(request: HttpRequest, campaign_id: uuid.UUID, message_id: int) -> HttpResponse:
    """One question with its answers; one about a document is on the document's page."""
    question = _question(campaign_id, message_id)
    if question.item_id is not None and request.method == "GET":
        return redirect(f"{reverse('console:item', args=[campaign_id, question.item_id])}#questions")
    form = MessageForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _thread_page(request, question, status=400 if request.method == "POST" else 200)
    try:
        letters.answer(
            question=question,
            text=form.cleaned_data["text"],
            sender=user_of(request),
            is_sure=request.POST.get("is_sure") == "yes",
        )
    except QuestionSecret:
        return _thread_page(request, question, text=form.cleaned_data["text"], warns=True, status=409)
    messages.success(
        request, f"Answered: {question.assessor.user.get_username()} sees it on the judging screen."
    )
    return redirect(_return_address(question))


@require_POST
@managers_only
def close(request: HttpRequest, campaign_id: uuid.UUID, message_id: int) -> HttpResponse:
    """Note that a question needs no answer."""
    question = _question(campaign_id, message_id)
    letters.close(question=question, actor=user_of(request))
    messages.success(request, "Closed without an answer.")
    return redirect(_return_address(question))


def threads_context(found: Any) -> dict[str, Any]:
    """Return what the item's page shows of questions about it, each thread with whether it could give a check away."""
    threads: dict[int, dict[str, Any]] = {}
    for row in letters.threads_about(found):
        first = threads.setdefault(row.thread_id or row.pk, {"first": row, "rows": [], "is_open": False})
        first["rows"].append(row)
        first["is_open"] |= row.is_from_assessor and row.read_at is None
    holders = letters.holders_of_secrets(found.pk) if threads else set()
    for one in threads.values():
        one["is_secret"] = one["first"].assessor_id in holders
    return {"threads": list(threads.values())}


def questions_need(row: Any) -> dict[str, Any] | None:
    """Return the alert that a question waits; None while none does."""
    n = getattr(row, "n_questions", 0)
    if not n:
        return None
    title = "A question waits for an answer." if n == 1 else f"{n:,} questions wait for an answer."
    return {
        "level": "next",
        "title": title,
        "words": "An assessor asked, and goes on judging meanwhile.",
        "url": reverse("console:message-thread", args=[row.pk, row.first_question]),
        "button": "Read it" if n == 1 else "Read the first",
    }


def _light(rows: Any) -> Any:
    return rows.defer("item__document__text", "item__document__html")


def _question(campaign_id: uuid.UUID, message_id: int) -> Message:
    # What a manager wrote about a document first is a thread of its page too.
    starts = Q(is_from_assessor=True) | Q(item__isnull=False)
    rows = Message.objects.filter(starts, assessor__campaign=campaign_id, thread=None)
    joined = rows.select_related("assessor__user", "assessor__campaign", "item__topic", "item__document")
    found: Message = get_object_or_404(_light(joined), pk=message_id)
    return found


def _thread_page(
    request: HttpRequest, question: Message, *, text: str = "", warns: bool = False, status: int = 200
) -> HttpResponse:
    rows = (
        Message.objects.filter(Q(pk=question.pk) | Q(thread=question)).select_related("sender").order_by("id")
    )
    shown = list(rows[:SHOWN_IN_THREAD])
    one = {
        "first": question,
        "rows": shown,
        "is_open": any(row.is_from_assessor and row.read_at is None for row in shown),
        "is_secret": letters.is_secret(question),
    }
    context = {"campaign": question.assessor.campaign, "thread": one, "text": text, "warns": warns}
    return render(request, "console/manager/message_thread.html", context, status=status)


def _return_address(question: Message) -> str:
    campaign_id = question.assessor.campaign_id
    if question.item_id is not None:
        return f"{reverse('console:item', args=[campaign_id, question.item_id])}#questions"
    return reverse("console:messages", args=[campaign_id])
