from django.apps import AppConfig


class SetupConfig(AppConfig):
    name = "prefmh_web.setup"

    def ready(self) -> None:
        from prefmh_web.campaigns.record import export
        from prefmh_web.setup import record

        export.also_texts(record.texts)
