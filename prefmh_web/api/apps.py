from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "prefmh_web.api"

    def ready(self) -> None:
        # Models can be imported only now.
        from prefmh_web.campaigns import dispatch
        from prefmh_web.endpoints import breaker

        # Endpoints know no campaign.
        breaker.also_tell(dispatch.endpoint_rests)
