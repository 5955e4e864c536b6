from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "prefmh_web.campaigns"

    def ready(self) -> None:
        from prefmh_web.campaigns.record import export, problems

        export.also(problems.tables)
