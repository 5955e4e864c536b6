"""Django's settings. What differs between installations comes from the environment; see `environment.py`.

The languages that voters' pages can speak are English, and each that has a folder in `prefmh_web/locale`. To add one:
write `<code>/LC_MESSAGES/django.po` there and run `manage.py compilemessages`. Once a native speaker has reviewed it,
add its code to `REVIEWED`.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from django.conf.locale import LANG_INFO
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from prefmh_web.settings import environment

BASE_DIR = Path(__file__).resolve().parents[2]
_given = environment.read()
DATA_DIR = _given.prefmh_data or BASE_DIR / "var"
# Beside where it will stay: keeping it is then a renaming, and a container's /tmp is memory.
FILE_UPLOAD_TEMP_DIR = DATA_DIR / "incoming"
_DATABASE = DATA_DIR / "prefmh.sqlite3"
try:
    DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, exist_ok=True)
except OSError as error:
    raise ImproperlyConfigured(f"PREFMH_DATA must be a folder that can be made and written: {error}.") from error
for _path in (DATA_DIR, _DATABASE) if _given.is_embedded else ():
    if _path.exists() and not os.access(_path, os.W_OK):
        raise ImproperlyConfigured(f"PREFMH_DATA must be a folder that can be made and written: {_path} is read-only.")


SOURCE = "en"
REVIEWED = frozenset({SOURCE})


def languages_in(folder: Path) -> list[tuple[str, str]]:
    """Return codes with the names that researchers read, the source language first."""
    translated = sorted(file.parts[-3] for file in folder.glob("*/LC_MESSAGES/django.po"))
    return [(code, _name(code)) for code in (SOURCE, *translated)]


def _name(code: str) -> str:
    name: str = LANG_INFO[code]["name_local"]
    return name if code in REVIEWED else f"{name} (not reviewed by a native speaker yet)"


def _kept_secret_key() -> str:
    path = DATA_DIR / "secret-key"
    if not path.exists():
        # Written whole and readable by its owner only, then named: of two processes that start at once one wins.
        draft = DATA_DIR / f"secret-key.{os.getpid()}"
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(get_random_secret_key())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text()


# One process with everything in it; otherwise several, with PostgreSQL and Redis between them.
EMBEDDED = _given.is_embedded
DEBUG = _given.debug == "1"

SECRET_KEY = _given.secret_key or _kept_secret_key()
SITE_URL = _given.site_url
ALLOWED_HOSTS = _given.hosts
CSRF_TRUSTED_ORIGINS: list[str] = [SITE_URL] if SITE_URL else []
if _given.trusted_proxy_tls_header:
    SECURE_PROXY_SSL_HEADER = (f"HTTP_{_given.trusted_proxy_tls_header.upper().replace('-', '_')}", "https")
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _given.is_https
# Probes and scrapes come from inside, past the proxy that ends TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = _given.hsts
# Other names below ours, and browsers' preload lists, are not this application's to promise https for.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

INSTALLED_APPS = [
    "prefmh_web",
    "prefmh_web.experiments",
    "prefmh_web.voting",
    "prefmh_web.participants",
    "prefmh_web.campaigns",
    "prefmh_web.endpoints",
    "prefmh_web.accounts",
    "channels",
    "csp",
    "django_htmx",
    # The page of the API takes its scripts from here, not from another host.
    "ninja",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "prefmh_web.transport.refusals.Legible",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "prefmh_web.urls"
ASGI_APPLICATION = "prefmh_web.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["prefmh_web.objects.texts"],
        },
    }
]

_SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": _DATABASE,
    "CONN_MAX_AGE": None,
    "OPTIONS": {
        # Writers queue at BEGIN; with the default, DEFERRED, twenty voters meet "database is locked".
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # What is deleted is overwritten: people who are forgotten leave nothing on the disk.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;",
    },
}


def _make_private(path: Path) -> None:
    """Make the database's owner its only reader, before SQLite makes it everybody's; what lies beside it follows."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    for each in (path, *(path.with_name(f"{path.name}-{kind}") for kind in ("wal", "shm", "journal"))):
        # Of another user: it is theirs to close. Gone: SQLite has put it away.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if each.stat().st_mode & 0o077:
                each.chmod(0o600)


if EMBEDDED:
    _make_private(_DATABASE)
DATABASES = {"default": _given.database or _SQLITE}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = _given.redis_url
REDIS_TIMEOUT_SECONDS = _given.redis_timeout_seconds
BROKER_TIMEOUT_SECONDS = _given.broker_timeout_seconds
_REDIS_LAYER = {
    "BACKEND": "prefmh_web.transport.layers.RedisLayer",
    # Publishing knows no database numbers: two installations on one Redis would notify each other.
    "CONFIG": {"prefix": f"prefmh.{DATABASES['default']['NAME']}."},
}
_IN_PROCESS_LAYER = {"BACKEND": "prefmh_web.transport.layers.ProcessLayer"}
CHANNEL_LAYERS = {"default": _IN_PROCESS_LAYER if EMBEDDED else _REDIS_LAYER}

# Reading a file takes seconds, a proposal milliseconds, a model server what it likes: none waits for another.
CELERY_TASK_ROUTES = {
    "prefmh_web.tasks.read_catalog": {"queue": "files"},
    "prefmh_web.tasks.judge": {"queue": "endpoints"},
    "prefmh_web.tasks.judge_whatever_waits": {"queue": "endpoints"},
    "prefmh_web.tasks.score": {"queue": "scores"},
    "prefmh_web.tasks.run_test": {"queue": "endpoints"},
}
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_IGNORE_RESULT = True
# Server mode alone has a broker.
if _given.broker_url is not None:
    CELERY_BROKER_URL = _given.broker_url
    # A message is gone once its task is done, not before, where the broker can do that: a task may run twice.
    CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = True
    CELERY_WORKER_PREFETCH_MULTIPLIER = 1
    CELERY_TASK_SOFT_TIME_LIMIT, CELERY_TASK_TIME_LIMIT = 55 * 60, 60 * 60
    # Redis cannot: kombu would keep a list there of what is under way, and a worker that changes that list after it has
    # lost Redis ends with an AttributeError (kombu 5.7). A message that is lost with its worker is given anew by the
    # sweep, here as elsewhere. A worker that waits for messages on a connection whose other end has vanished would wait
    # for ever; the kernel tells it.
    if CELERY_BROKER_URL.startswith("redis"):
        CELERY_BROKER_TRANSPORT_OPTIONS = {
            "ack_emulation": False,
            "socket_keepalive": True,
            "socket_keepalive_options": environment.keepalive(),
        }
    # Sent once: `transport/publishing.py` tries again, and the sweep finds the work.
    CELERY_TASK_PUBLISH_RETRY = False
    CELERY_BROKER_CONNECTION_TIMEOUT = 2
    CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
    CELERY_BROKER_CONNECTION_MAX_RETRIES = None
    # RabbitMQ closes the channel of a worker that takes half an hour for a task; without this that ends the worker.
    CELERY_BROKER_CHANNEL_ERROR_RETRY = True
    CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
    # Prefork workers keep their database connection; `prefmh_web/celery.py` asks whether it still lives.
    CELERY_DB_REUSE_MAX = 10_000
    CELERY_WORKER_REDIRECT_STDOUTS = False
    # In memory: a sweep is due every few seconds, whatever happened before.
    CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"
    # A sweep nobody had time for is dropped: the next one finds the same work. Beat keeps one connection, and without a
    # retry it would never open another one after RabbitMQ has cut that.
    _EVERY_5_S = {"schedule": 5, "options": {"expires": 5, "retry": True}}
    CELERY_BEAT_SCHEDULE = {
        "sweep": {"task": "prefmh_web.tasks.sweep", **_EVERY_5_S},
        "sweep-leases": {"task": "prefmh_web.tasks.sweep_leases", **_EVERY_5_S},
        "settle-parts": {"task": "prefmh_web.tasks.settle_parts", **_EVERY_5_S},
    }

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "sesame.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
SESAME_MAX_AGE = 24 * 60 * 60
LOGIN_URL = "accounts:sign-in"
LOGIN_REDIRECT_URL = "console:campaigns"
LOGOUT_REDIRECT_URL = "accounts:sign-in"

SESSION_ENGINE = "prefmh_web.accounts.models"
SESSION_COOKIE_NAME = "prefmh_session"
SESSION_COOKIE_AGE = 60 * 24 * 60 * 60
CSRF_COOKIE_NAME = "prefmh_csrf"
CSRF_COOKIE_HTTPONLY = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

USE_TZ = True
TIME_ZONE = "UTC"
# The researcher's pages are in English; the voters', in the language of their campaign.
LANGUAGE_CODE = SOURCE
LOCALE_PATHS = [BASE_DIR / "prefmh_web" / "locale"]
LANGUAGES = languages_in(LOCALE_PATHS[0])

DOCS_DIR = BASE_DIR / "docs"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
if _given.static_root:
    # Collected under names that carry a hash of the content, so that browsers and proxies may keep them for ever.
    STATIC_ROOT = _given.static_root
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"},
    }
SERVESTATIC_USE_FINDERS = not _given.static_root
SERVESTATIC_AUTOREFRESH = DEBUG
MEDIA_ROOT = DATA_DIR / "media"
# A catalog upload is bounded by the form; it streams to disk above this size.
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
# Pictures and recordings of a list come as they are. Each is an open file until its request ends.
DATA_UPLOAD_MAX_NUMBER_FILES = 200
# A protocol with all the rows that it may have takes 1,300.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000
FILE_UPLOAD_PERMISSIONS, FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o600, 0o700

ENDPOINT_ALLOWED_HOSTS = _given.endpoint_allowed_hosts
ENDPOINT_ALLOW_PRIVATE = _given.endpoint_allow_private
ENDPOINT_KEYS = _given.endpoint_keys
LOCAL_MODELS = _given.local_models
LOCAL_IMAGE_MODELS = _given.local_image_models
LOCAL_DEVICE = _given.local_device
MODEL_CAP_COST = _given.model_cap_cost
MODEL_CAP_REQUESTS = _given.model_cap_requests
SCORERS = _given.scorers
SCORER_TIMEOUT_SECONDS = _given.scorer_timeout_seconds

TRUSTED_PROXIES = _given.trusted_proxies
RATE_LIMITS = _given.rate_limits

METRICS_ALLOW = _given.metrics_allow
METRICS_TOKEN = _given.metrics_token
HEARTBEAT_FILE = _given.heartbeat_file

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"context": {"()": "prefmh_web.operations.logs.ContextFilter"}},
    "formatters": {
        "line": {"()": "prefmh_web.operations.logs.LineFormatter"},
        "json": {"()": "prefmh_web.operations.logs.JsonFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": _given.log_format or ("line" if EMBEDDED else "json"),
            "filters": ["context"],
            "stream": sys.stderr,
        }
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "prefmh_web": {"level": _given.log_level or ("WARNING" if EMBEDDED else "INFO")},
        # Uvicorn sets up loggers of its own before it imports us, and Django has some: one stream of one form, without
        # secrets, is what collectors read. Each address that uvicorn would note holds an invitation: no access log.
        **{
            name: {"handlers": [], "propagate": True, "level": "WARNING"}
            for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
        },
        **{name: {"handlers": [], "propagate": True, "level": "INFO"} for name in ("django", "django.server")},
    },
}
