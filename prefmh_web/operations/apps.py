from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "prefmh_web.operations"

    def ready(self):
        from prefmh_web.operations import secrecy, task_log  # noqa: F401 - loaded for their signal receivers

        secrecy.install()
