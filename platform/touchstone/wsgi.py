"""The web process: `gunicorn touchstone.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")
application = get_wsgi_application()
