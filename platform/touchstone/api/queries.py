"""No key in a query that the view does not know: a misspelled filter would else give all rows, silently."""

from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle


class KnownQuery(BaseThrottle):
    """Not a throttle: what settings.py can have done for every view, after its guards, is called so."""

    def allow_request(self, request: Request, view: Any) -> bool:
        query = request.query_params
        if query:
            known = known_keys(view) if request.method in ("GET", "HEAD") else set()
            faults = {
                name: ["there is nothing of this name to ask for here"] for name in query if name not in known
            }
            twice = [name for name in query if len(query.getlist(name)) > 1]
            faults |= {name: ["is given twice"] for name in twice if name not in faults}
            if faults:
                raise ValidationError(faults)
        return True


def known_keys(view: Any) -> set[str]:
    """Return what may stand in the query: the filters, order and pages of a list; what else the view names."""
    known = set(getattr(view, "query_fields", ()))
    serializer = getattr(view, "query_serializer", None)
    if serializer is not None:
        known |= set(serializer().fields)
    if isinstance(view, ListModelMixin) or hasattr(view, "filter_fields"):
        known |= {
            "cursor",
            "page_size",
            *getattr(view, "filter_fields", {}),
            *getattr(view, "old_filters", {}),
        }
        known |= {"order"} if getattr(view, "order_fields", ()) else set()
    return known
