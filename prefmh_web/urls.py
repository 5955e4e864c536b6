"""Every address of the site: of programs that watch it, of voters, of accounts, of researchers, and the API.

`API` is one object: its routes, its OpenAPI document, and a page that shows it.
"""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, re_path
from ninja import NinjaAPI, Swagger

from prefmh_web.accounts.views import SignIn, SignInByLink
from prefmh_web.api import campaigns as campaigns_api
from prefmh_web.api import records
from prefmh_web.api.access import Bearer, for_whoever_may_ask, tell_on
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import changes, judge_trials
from prefmh_web.console.views import campaigns, endpoints, people, results, setup, study
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
_OF_CAMPAIGN = [
    path("", campaigns.campaign, name="campaign"),
    path("convergence/", results.convergence, name="convergence"),
    path("setup/", setup.edit, name="edit"),
    path("setup/file/", setup.download, name="setup-file"),
    path("duplicate/", setup.duplicated, name="duplicate"),
    path("preview/participant/", setup.participant_preview, name="participant-preview"),
    path("setup/prompt/", setup.preview_prompt, name="preview"),
    path("start/", campaigns.transition, {"change": lifecycle.request_start}, name="start"),
    path("delete/", campaigns.discard, name="discard"),
    path("pause/", campaigns.transition, {"change": lifecycle.pause}, name="pause"),
    path("resume/", campaigns.transition, {"change": lifecycle.resume}, name="resume"),
    path("finish/", campaigns.transition, {"change": lifecycle.finish_now}, name="finish"),
    path("warm-up/end/", campaigns.transition, {"change": changes.end_warm_up}, name="end-warm-up"),
    path("panel/", people.panel, name="panel"),
    path("panel/<int:number>/remind/", people.remind, name="remind"),
    path("members/", people.add_member, name="add-member"),
    path("members/<int:member_id>/remove/", people.remove_member, name="remove-member"),
    path("invitations/", people.invite, name="invite"),
    path("invitations/<int:invitation_id>/revoke/", people.revoke, name="revoke"),
    path("chains/", results.chains, name="chains"),
    path("steps/", results.steps, name="steps"),
    path("steps/<int:chain>/<int:step>/", results.step, name="step"),
    path("steps/<int:chain>/<int:step>/<str:shown>/", results.picture, name="step-picture"),
    path("results/", results.results, name="results"),
    path("results/found/", results.found, name="found"),
    path("results/verdict/", results.verdict, name="verdict"),
    path("results/properties/", results.properties, name="properties"),
    path("record/", results.record, name="record"),
    path("files/<str:filename>", results.download, name="download"),
    path("participants/", study.participants, name="participants"),
    path("participants/payments.csv", study.table, {"name": "payments.csv"}, name="payments"),
    path("participants/answers.csv", study.table, {"name": "answers.csv"}, name="answers"),
    path("people/", people.people, name="people"),
    path("people/<int:voter_number>/", people.person, name="person"),
    path("people/<int:voter_number>/end/", people.end, name="end-part"),
    path("people/<int:voter_number>/bonus/", people.bonus, name="bonus"),
    path("people/<int:voter_number>/erase/", people.erase, name="erase"),
    path("people/<int:voter_number>/paid/", people.mark_one_paid, name="mark-person-paid"),
    path("participants/paid/", study.mark_paid, name="mark-paid"),
    path("protocol/", study.protocol, name="protocol"),
    path("participants/forget/", study.forget, name="forget-participants"),
    path("suspended/", results.suspended, name="suspended"),
    path("suspended/<int:comparison_id>/again/", results.ask_again, name="ask-again"),
    path("suspended/<int:comparison_id>/end/", results.end_chain, name="end-chain"),
    path("problems/", results.problems, name="problems"),
    path("judges/try-again/", campaigns.ask_judges_again, name="try-again"),
    path("scorers/try-again/", campaigns.ask_scorers_again, name="score-again"),
    path("judges/accept/", campaigns.accept, name="accept-model"),
    path("try/<int:index>/", endpoints.try_judge, name="try"),
    path("tries/<int:trial_id>/stop/", endpoints.change_trial, {"change": judge_trials.stop}, name="stop-try"),
    path("tries/<int:trial_id>/go-on/", endpoints.change_trial, {"change": judge_trials.go_on}, name="go-on-try"),
    path("tries/<int:trial_id>/pairs/<int:pair>/", endpoints.prefer, name="prefer"),
    path("tries/<int:trial_id>/pairs/<int:pair>/<int:which>/", endpoints.tried_picture, name="tried-picture"),
    path("afresh/", setup.start_afresh, name="start-afresh"),
    path("pilot/", setup.run_pilot, name="run-pilot"),
    path("archive/", campaigns.archive, {"is_archived": True}, name="archive"),
    path("unarchive/", campaigns.archive, {"is_archived": False}, name="unarchive"),
    path("delete/confirmed/", campaigns.delete, name="delete"),
    path("extend/", campaigns.extend, name="extend"),
]
_CONSOLE: list[URLPattern | URLResolver] = [
    path("", campaigns.campaigns, name="campaigns"),
    path("campaigns/new/", setup.create, name="create"),
    path("campaigns/import/", setup.import_setup, name="import"),
    path("campaigns/new/pictures/<str:signed>/", setup.preview_picture, name="preview-picture"),
    path("campaigns/new/list/", setup.look_at_list, name="list"),
    path("campaigns/new/estimate/", setup.estimate, name="estimate"),
    path("campaigns/new/prompt/", setup.preview_prompt, name="preview-new"),
    path("docs/<slug:name>.md", campaigns.documentation, name="docs"),
    path("tokens/", endpoints.tokens, name="tokens"),
    path("tokens/<int:token_id>/withdraw/", endpoints.withdraw, name="withdraw-token"),
    path("endpoints/", endpoints.endpoints, name="endpoints"),
    path("endpoints/new/", endpoints.edit, name="new-endpoint"),
    path("endpoints/models/", endpoints.models, name="models-there"),
    path("endpoints/<int:endpoint_id>/", endpoints.edit, name="edit-endpoint"),
    path("endpoints/<int:endpoint_id>/test/", endpoints.test, name="test-endpoint"),
    path("endpoints/<int:endpoint_id>/test/stop/", endpoints.stop, name="stop-test"),
    path("endpoints/<int:endpoint_id>/remove/", endpoints.remove, name="remove-endpoint"),
    path("campaigns/pictures/<int:state_id>/", campaigns.picture, name="picture"),
    path("campaigns/<int:campaign_id>/", include(_OF_CAMPAIGN)),
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
API.add_router("/campaigns", campaigns_api.router)
API.add_router("/campaigns", records.router)

urlpatterns = [
    path("", include((_OPERATIONS, "operations"))),
    path("", include((_CONSOLE, "console"))),
    path("", include((_VOTING, "voting"))),
    path("accounts/", include((_ACCOUNTS, "accounts"))),
    path("api/", API.urls),
]
