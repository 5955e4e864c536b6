from importlib import import_module

from django.apps import AppConfig


class AnnotateConfig(AppConfig):
    name = "prefmh_web.annotate"

    def ready(self):
        # Celery finds tasks by itself in workers only; here they are called by name.
        import_module("prefmh_web.annotate.tasks")
        # Hears of people whose access is withdrawn, in workers too.
        import_module("prefmh_web.annotate.admission")
