"""What gunicorn serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application

from touchstone.bodies import whole_bodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")
application = whole_bodies(get_wsgi_application())

# What was made so far lives as long as the process: collecting garbage need not look at it again and again.
gc.collect()
gc.freeze()
gc.set_threshold(20_000, 20, 20)
