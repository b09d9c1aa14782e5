# The product without its servers: PostgreSQL and Redis are services of their own (docker-compose.yml).
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    TOUCHSTONE_VAR=/var/lib/touchstone

# Uploaded rankings are written by the web process and read by the worker, certificates are the front door's; all else
# in the image is root's.
RUN useradd --system --uid 10001 --no-create-home touchstone \
    && install --directory --owner touchstone --group touchstone /var/lib/touchstone/files \
        /var/lib/touchstone/backup /var/lib/touchstone/certificates /var/lib/touchstone/counters \
        /var/lib/touchstone/cache /var/lib/touchstone/mail

WORKDIR /srv/touchstone
COPY requirements.lock ./
RUN pip install --require-hashes -r requirements.lock

# Editable: one copy of the source, with "touchstone" (inside platform/) on Python's path.
COPY . .
RUN pip install --no-deps --no-build-isolation --editable . \
    && SECRET_KEY=only-while-the-image-is-built python manage.py collectstatic --noinput --verbosity 0

USER touchstone
EXPOSE 8000
CMD ["gunicorn", "touchstone.wsgi", "--workers", "1", "--preload", "--threads", "4", "--keep-alive", "75", "--timeout", "60", "--max-requests", "20000", "--no-control-socket", "--logger-class", "touchstone.gunicorn_log.Log", "--bind", "0.0.0.0:8000"]
