"""Messages of managers to an assessor, on the assessor's pages until marked as read."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from judging.models import Message
from judging.services.messages import mark_read
from touchstone.models import user_of


@require_POST
def read(request: HttpRequest, message_id: int) -> HttpResponse:
    """Note that it was read; somebody else's looks like none. A script wants no page, a form goes back."""
    message = get_object_or_404(
        Message.objects.select_related("assessor"), pk=message_id, assessor__user=user_of(request)
    )
    mark_read(message=message, user=user_of(request))
    if request.headers.get("Accept") == "application/json":
        return HttpResponse(status=204)
    if request.POST.get("back") == "judge":
        return redirect("judging:judge", campaign_id=message.assessor.campaign_id)
    return redirect(reverse("judging:home"))
