"""Settings of the embedded mode: one process, SQLite, an in-memory channel layer, tasks on threads.

Environment:
    PREFMH_DATA     folder of the database, uploads and the generated key; default `var` in the checkout
    SECRET_KEY      default: generated once and kept in PREFMH_DATA, readable by its owner only
    ALLOWED_HOSTS   comma-separated names this site may be called by, beside localhost
    DEBUG           "1" shows tracebacks in the browser
"""

import contextlib
import os
import sys
from pathlib import Path

from django.core.management.utils import get_random_secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("PREFMH_DATA", BASE_DIR / "var"))
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)


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


DEBUG = os.environ.get("DEBUG") == "1"
SECRET_KEY = os.environ.get("SECRET_KEY") or _kept_secret_key()
CSRF_TRUSTED_ORIGINS: list[str] = []
ALLOWED_HOSTS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    *(host.strip() for host in os.environ.get("ALLOWED_HOSTS", "").split(",") if host.strip()),
]

INSTALLED_APPS = [
    "prefmh_web.demo",
    "prefmh_web.embedded",
    "prefmh_web.annotate",
    "prefmh_web.console",
    "prefmh_web.campaigns",
    "prefmh_web.accounts",
    "channels",
    "csp",
    "django_htmx",
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
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA_DIR / "prefmh.sqlite3",
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # Writers queue at BEGIN; with the default, DEFERRED, twenty voters meet "database is locked".
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS = {"default": {"BACKEND": "prefmh_web.embedded.layer.InProcessChannelLayer"}}

# Reading a file takes seconds, a proposal milliseconds: neither waits for the other.
CELERY_TASK_ROUTES = {"prefmh_web.campaigns.tasks.read_catalog": {"queue": "files"}}

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
LANGUAGE_CODE = "en"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
MEDIA_ROOT = DATA_DIR / "media"
# A catalog upload is bounded by the form; it streams to disk above this size.
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
FILE_UPLOAD_PERMISSIONS = 0o600

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "stream": sys.stderr}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
