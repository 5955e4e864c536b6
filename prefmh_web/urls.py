"""Every address of the site; the pages of researchers are in `console/urls.py`, those for programs in `api`.

`API` is one object: its routes, its OpenAPI document, and a page that shows it.
"""

from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path
from ninja import NinjaAPI, Swagger

from prefmh_web.accounts.views import SignIn, SignInByLink
from prefmh_web.api import campaigns, records
from prefmh_web.api.access import Bearer, for_whoever_may_ask, tell_on
from prefmh_web.operations import metrics, probes
from prefmh_web.voting import views as voting

_UUID = "-".join(f"[0-9a-f]{{{length}}}" for length in (8, 4, 4, 4, 12))

_OPERATIONS = [
    path("healthz", probes.healthz, name="healthz"),
    path("readyz", probes.readyz, name="readyz"),
    path("metrics", metrics.metrics_page, name="metrics"),
]
_VOTING = [
    path("join/<str:token>/", voting.welcome, name="welcome"),
    path("join/<str:token>/vote/", voting.vote, name="vote"),
    path("join/<str:token>/stage/", voting.stage, name="stage"),
    re_path(
        r"^join/(?P<token>[^/]+)/practice/(?P<number>[0-9]{1,3})/(?P<side>first|second)/$",
        voting.practice_picture,
        name="practice-picture",
    ),
    path("join/<str:token>/withdraw/", voting.withdraw, name="withdraw"),
    path("join/<str:token>/report/<uuid:lease>/", voting.report, name="report"),
    re_path(rf"^pairs/(?P<lease>{_UUID})/(?P<side>first|second)/$", voting.picture, name="picture"),
]
_ACCOUNTS = [
    path("sign-in/", SignIn.as_view(), name="sign-in"),
    path("sign-in/by-link/", SignInByLink.as_view(), name="sign-in-by-link"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
]

API = NinjaAPI(
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
tell_on(API)
API.add_router("/campaigns", campaigns.router)
API.add_router("/campaigns", records.router)

urlpatterns = [
    path("", include((_OPERATIONS, "operations"))),
    path("", include("prefmh_web.console.urls")),
    path("", include((_VOTING, "voting"))),
    path("accounts/", include((_ACCOUNTS, "accounts"))),
    path("api/", API.urls),
]
