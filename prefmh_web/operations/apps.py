from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "prefmh_web.operations"

    def ready(self):
        from prefmh_web.operations import logs

        logs.install()
