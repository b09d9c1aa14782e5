"""Every setting, in one file, from the environment alone.

DATABASE_URL and REDIS_URL name real servers. Without them the servers are those of the embedded stack
(`make demo`, `make run`), whose addresses stand in var/stack.json while it runs.
"""

import os

# Before NumPy is loaded: one thread a process gives the same bits on every machine, and workers do not fight for cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from psycopg import pq

from touchstone import embedded, lanes, logs, rights, roles
from touchstone.mail_settings import *  # noqa: F403
from touchstone.sign_on_settings import *  # noqa: F403

REPOSITORY = Path(__file__).resolve().parents[2]
VAR = Path(os.environ.get("TOUCHSTONE_VAR", REPOSITORY / "var")).resolve()
_stack = embedded.running_stack(VAR)


IS_WORKER = os.environ.get("TOUCHSTONE_ROLE") == "worker"


# What stands between us and PostgreSQL: nothing, or a PgBouncer that lends a connection for one transaction.
POOLER = os.environ.get("POOLER", "")
if POOLER not in ("", "transaction"):
    raise ImproperlyConfigured(f"POOLER is transaction, or empty, not {POOLER}")


def database_from_url(url: str, pooler: str = POOLER) -> dict[str, object]:
    parts = urlsplit(url)
    user = unquote(parts.username or "")
    if IS_WORKER and user == rights.WEB:
        raise ImproperlyConfigured(
            f"DATABASE_URL: a worker connects as {rights.WORKER}; {rights.WEB} ends long jobs"
        )
    options = roles.session_options(user, is_worker=IS_WORKER)
    if pooler and options:
        raise ImproperlyConfigured(
            f"DATABASE_URL: through a pooler, sessions have the settings of their role: connect as {rights.WEB} or "
            f"{rights.WORKER}, whom `prepare` gives them, and not as {user}"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": user,
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or 5432),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # A cursor that outlives its transaction is on a connection that somebody else has by then.
        "DISABLE_SERVER_SIDE_CURSORS": bool(pooler),
        "OPTIONS": {
            "connect_timeout": 5,
            # The few statements that run prepared (judging/services/assign.py, touchstone/sessions.py) are so from
            # the first time on, and planned once: their plans do not depend on the values. A connection that is lent
            # for a transaction may be one that has prepared another statement of this name, or none.
            "prepare_threshold": None if pooler else 0,
            **_parameters(parts.query),
            **({"options": options} if options else {}),
        },
    }


# Of a replica: one that is away is noticed soon, and the primary answers then.
PATIENCE = {
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


def replica_from_url(url: str) -> dict[str, object]:
    made = database_from_url(url)
    if made["USER"] == rights.READ:
        raise ImproperlyConfigured(
            f"READ_DATABASE_URL: pages read as {rights.WEB}; {rights.READ} does not see all"
        )
    return {**made, "OPTIONS": {**made["OPTIONS"], **PATIENCE}}  # type: ignore[dict-item]


def _parameters(query: str) -> dict[str, str]:
    """Return what stands behind the question mark of DATABASE_URL, as libpq knows it: sslmode, sslrootcert, ..."""
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    if "options" in parameters:
        raise ImproperlyConfigured("DATABASE_URL: options= is not possible, Touchstone sets its own")
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    if unknown := sorted(set(parameters) - known):
        raise ImproperlyConfigured(f"DATABASE_URL: PostgreSQL knows no parameter {', '.join(unknown)}")
    return parameters


def cookie_name(name: str, is_https: bool) -> str:
    """Return the cookie's name: over TLS, browsers take one that begins so from this very host alone."""
    return f"__Host-{name}" if is_https else name


def _networks(text: str) -> list[IPv4Network | IPv6Network]:
    """Return addresses and networks that are separated by commas."""
    try:
        return [ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ImproperlyConfigured(f"PROXY_ADDRESSES: {error}") from error


def file_storage(url: str, folder: Path) -> dict[str, object]:
    """Return the storage of files: a bucket of S3, or without an address the folder."""
    if not url:
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": folder}}
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        raise ImproperlyConfigured(
            "FILES_URL is s3://bucket/prefix; keys and endpoint are in AWS_... variables"
        )
    options = {"bucket_name": parts.netloc, "location": parts.path.strip("/")}
    return {"BACKEND": "touchstone.s3.S3", "OPTIONS": options}


def secret_key() -> str:
    if "SECRET_KEY" in os.environ:
        return os.environ["SECRET_KEY"]
    if "DATABASE_URL" in os.environ:
        raise ImproperlyConfigured("SECRET_KEY is not set: there is no default outside the embedded stack")
    return embedded.secret(VAR, "django")


DEBUG = os.environ.get("DEBUG") == "1"
# The demo's web process says so: nowhere else does the login page show passwords.
DEMO = os.environ.get("TOUCHSTONE_DEMO") == "1"
# What /livez answers: an embedded stack tells its own web process from another's on the same port.
STACK = os.environ.get("TOUCHSTONE_STACK", "ok")
SECRET_KEY = secret_key()
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("CSRF_TRUSTED_ORIGINS", "").split(",") if origin]
# The embedded stack speaks plain HTTP on loopback; everywhere else cookies travel over TLS only.
HTTPS = os.environ.get("HTTPS", "1" if "DATABASE_URL" in os.environ else "0") == "1"

# Port 1 answers nobody: a command without a server fails with "connection refused", which manage.py explains.
DATABASES = {
    "default": database_from_url(
        os.environ.get("DATABASE_URL")
        or _stack.get(
            "worker_url" if IS_WORKER else "database_url", "postgresql://touchstone@127.0.0.1:1/touchstone"
        )
    )
}
# A replica, for researchers' pages (touchstone/replica.py).
if not IS_WORKER and os.environ.get("READ_DATABASE_URL"):
    DATABASES["replica"] = replica_from_url(os.environ["READ_DATABASE_URL"])
# For `prepare` alone: as whom the database is migrated, and the passwords of the roles that it makes.
_prepared_stack = {} if "DATABASE_URL" in os.environ else _stack
DATABASE_OWNER_URL = os.environ.get("DATABASE_OWNER_URL") or _prepared_stack.get("owner_url", "")
DATABASE_PASSWORDS = _prepared_stack.get("passwords") or {
    rights.WEB: os.environ.get("DATABASE_WEB_PASSWORD", ""),
    rights.WORKER: os.environ.get("DATABASE_WORKER_PASSWORD", ""),
    rights.READ: os.environ.get("DATABASE_READ_PASSWORD", ""),
    rights.BACKUP: os.environ.get("DATABASE_BACKUP_PASSWORD", ""),
}
# For `backup` alone: as whom the cluster is copied and its log received. Empty: as DATABASE_URL says.
DATABASE_BACKUP_URL = os.environ.get("DATABASE_BACKUP_URL") or _prepared_stack.get("backup_url", "")
REDIS_URL = os.environ.get("REDIS_URL") or _stack.get("redis_url", "redis://127.0.0.1:1/0")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "csp",
    "django_htmx",
    "touchstone",
    "judging",
    "sampling",
    "analytics",
    "console",
]
MIDDLEWARE = [
    "touchstone.traffic.ids_and_counts",
    "touchstone.headers.every_answer",
    "django.middleware.security.SecurityMiddleware",
    "touchstone.uploads.early_refusals",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    # Before CsrfViewMiddleware, which has uploads written: touchstone.uploads.Gate asks who it is.
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "touchstone.replica.remembers_writes",
    # Behind the user, who may have chosen, and before whatever may answer with a page.
    "touchstone.languages.assessors_language",
    "touchstone.readers.readers_zone",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "touchstone.views.refusals_become_pages",
    "touchstone.api.plain_bytes.plain_bytes_where_asked",
]
ROOT_URLCONF = "touchstone.urls"
WSGI_APPLICATION = "touchstone.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "touchstone.views.worker_state",
                "touchstone.languages.language_context",
                "touchstone.sign_on_pages.sign_on_context",
            ]
        },
    }
]

AUTH_USER_MODEL = "touchstone.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
CSRF_FAILURE_VIEW = "touchstone.views.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
# Of the assessors' pages (touchstone/languages.py), each by its own name; docs/languages.md says how to add one.
LANGUAGES = [("en", "English"), ("es", "Español"), ("de", "Deutsch"), ("zh-hans", "简体中文")]
LANGUAGE_COOKIE_NAME = cookie_name("language", HTTPS)
LOCALE_PATHS = [REPOSITORY / "platform" / "touchstone" / "locale"]

# Where `manage.py metrics` listens, never on the site's port, and whose pages it asks for. No address: no metrics.
METRICS_BIND = os.environ.get("METRICS_BIND", "127.0.0.1:9464")
METRICS_SITE = os.environ.get("METRICS_SITE", "http://127.0.0.1:8000")

# Bytes that are to stay free on every disk: below, /readyz says that the process is degraded, and jobs wait.
DISK_FLOOR = int(os.environ.get("DISK_FLOOR", "2000000000"))
# The folder of backups: the embedded stack keeps one up to date there, best on another disk. Empty: none.
BACKUP = os.environ.get("TOUCHSTONE_BACKUP", "")

STATIC_URL = "/static/"
STATIC_ROOT = VAR / "static"
MEDIA_ROOT = VAR / "files"
# Where files are: s3://bucket/prefix, or this machine's folder. Of S3's, copies are kept here, so many bytes.
FILES_URL = os.environ.get("FILES_URL", "")
FILES_CACHE = VAR / "cache"
FILES_CACHE_BYTES = int(os.environ.get("FILES_CACHE_BYTES", "10000000000"))
STORAGES = {
    "default": file_storage(FILES_URL, MEDIA_ROOT),
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = DEBUG
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
FILE_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
FILE_UPLOAD_TEMP_DIR = None
FILE_UPLOAD_HANDLERS = [
    "touchstone.uploads.Gate",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

# A message may be a new assessor's password: it stays on the server.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_ENGINE = "touchstone.sessions"
AUTHENTICATION_BACKENDS = ["touchstone.sessions.Backend"]
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = cookie_name("sessionid", HTTPS), cookie_name("csrftoken", HTTPS)
OWN_WRITE_COOKIE = cookie_name("wrote", HTTPS)
SESSION_COOKIE_AGE = 7 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "frame-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "touchstone.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "touchstone.authentication.OneRenderer",
    "DEFAULT_PARSER_CLASSES": ["touchstone.uploads.LimitedJSONParser"],
    "EXCEPTION_HANDLER": "touchstone.authentication.problem",
    "DEFAULT_SCHEMA_CLASS": "touchstone.api.schema.Schema",
    "DEFAULT_PAGINATION_CLASS": "touchstone.api.pagination.Pages",
    "DEFAULT_FILTER_BACKENDS": ["touchstone.api.filters.ListedFilters", "touchstone.api.filters.ListedOrder"],
    # Called for every view after its guards and before its work, in this order.
    "DEFAULT_THROTTLE_CLASSES": [
        "touchstone.api.rate_limits.Limits",
        "touchstone.api.queries.KnownQuery",
        "touchstone.api.idempotency.OncePerKey",
    ],
}
# How often, each counted by the database. Per minute: requests of a key or a session, of an address, wrong keys of an
# address. In a quarter of an hour: wrong passwords for a name, from an address.
API_REQUESTS = int(os.environ.get("API_REQUESTS", "600"))
API_REQUESTS_PER_ADDRESS = int(os.environ.get("API_REQUESTS_PER_ADDRESS", "3000"))
API_WRONG_KEYS = int(os.environ.get("API_WRONG_KEYS", "30"))
# Of the judging screen, a minute and session: counted by each web process for itself, without a statement.
JUDGING_REQUESTS = int(os.environ.get("JUDGING_REQUESTS", "240"))
LOGIN_TRIES = int(os.environ.get("LOGIN_TRIES", "10"))
LOGIN_TRIES_PER_ADDRESS = int(os.environ.get("LOGIN_TRIES_PER_ADDRESS", "100"))
# How many proxies of our own a request passes: so many entries at the end of X-Forwarded-For are theirs. 0: none.
TRUSTED_PROXIES = int(os.environ.get("TRUSTED_PROXIES", "0"))
# Where they are, as addresses or networks: of anybody else that header is not read.
PROXY_ADDRESSES = _networks(os.environ.get("PROXY_ADDRESSES", "127.0.0.0/8,::1"))
# Whom webhooks may call: "https://hooks.example.org,https://other.example.org:8443". Empty: nobody.
WEBHOOK_HOSTS = [host.strip() for host in os.environ.get("WEBHOOK_HOSTS", "").split(",") if host.strip()]
SPECTACULAR_SETTINGS = {
    "TITLE": "Touchstone",
    "DESCRIPTION": "Relevance judgments whose error is known: everything that the screens do, for API clients.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": ["touchstone.api.schema.with_problems"],
    # A session is the browser's; programs bring keys.
    "AUTHENTICATION_WHITELIST": ["touchstone.authentication.TokenAuthentication"],
}

CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_PUBLISH_RETRY = False
# Work is sent to its lane, with the time limit of the lane; the clock's tick to whichever worker has time.
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {name: {} for name in (*lanes.QUEUES, lanes.TICK)}
CELERY_TASK_DEFAULT_QUEUE = lanes.TICK
CELERY_TASK_TIME_LIMIT = lanes.SECONDS[lanes.QUICK]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# A frozen Redis must not freeze a request: every call gives up after two seconds.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 2.0,
    "socket_connect_timeout": 2.0,
    "unacked_restore_throttle": 1,
    "retry_on_timeout": False,
    "max_retries": 0,
}
CELERY_BEAT_SCHEDULE = {"tick": {"task": "touchstone.tasks.tick", "schedule": 5.0, "options": {"expires": 5}}}
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR / "beat")

LOG_FORMAT = os.environ.get("LOG_FORMAT", "text")
if LOG_FORMAT not in logs.FORMATS:
    raise ImproperlyConfigured(f"LOG_FORMAT is {' or '.join(logs.FORMATS)}, not {LOG_FORMAT}")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": logs.FORMATS[LOG_FORMAT]}},
    "handlers": {"stderr": {"()": "touchstone.logs.Lines", "formatter": "line"}},
    # At INFO it writes the whole address of every webhook's call, which is often a secret.
    "loggers": {"httpx": {"level": "WARNING"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("LOG_LEVEL", "INFO")},
}
