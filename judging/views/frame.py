"""What an item shows, alone in a sandbox."""

import uuid

from django.http import Http404, HttpRequest, HttpResponse

from judging.models import Lease
from judging.services.item_frame import frame_response
from touchstone.models import user_of


def frame(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """The texts of a leased item, as they were when it was leased; only its assessor gets them."""
    lease = (
        Lease.objects.filter(token=token, assessor__user=user_of(request))
        .filter(assessor__campaign__deleted_at=None, assessor__campaign__collection__deleted_at=None)
        .select_related("assessor__campaign__collection", "slot__item__topic", "slot__item__document")
        .defer("slot__item__document__text", "slot__item__document__html")
        .first()
    )
    if lease is None:
        raise Http404
    item = lease.slot.item
    return frame_response(request, item, lease.assessor.campaign, as_of=lease.leased_at)
