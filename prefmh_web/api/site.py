"""The API as one object: its routes, its OpenAPI document, and a page that shows it."""

from ninja import NinjaAPI, Swagger

from prefmh_web.api import campaigns, records
from prefmh_web.api.access import Bearer, for_whoever_may_ask, tell_on

api = NinjaAPI(
    title="prefmh",
    version="1",
    description=(
        "Campaigns as programs use them. A token acts for the researcher who created it and sees what they see. "
        "What was wrong with a request is told in sentences, and nothing is changed then."
    ),
    urls_namespace="api",
    auth=Bearer(),
    docs=Swagger(settings={"persistAuthorization": False}),
    docs_decorator=for_whoever_may_ask,
)
tell_on(api)
api.add_router("/campaigns", campaigns.router)
api.add_router("/campaigns", records.router)
