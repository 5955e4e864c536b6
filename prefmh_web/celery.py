"""The Celery application. Embedded, its tasks run on threads of the serving process; see `embedded/tasks.py`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")

app = Celery("prefmh", task_cls="prefmh_web.embedded.tasks:InProcessTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
