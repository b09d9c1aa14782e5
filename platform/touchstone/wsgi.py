"""What gunicorn serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")
application = get_wsgi_application()

# What was made so far lives as long as the process: collecting garbage need not look at it again and again.
gc.collect()
gc.freeze()
gc.set_threshold(20_000, 20, 20)
