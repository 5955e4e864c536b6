from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "prefmh_web.operations"

    def ready(self):
        from prefmh_web.operations import record_log, secrecy, task_log  # noqa: F401 - the logs' receivers

        secrecy.install()
