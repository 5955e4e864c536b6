"""Whether a server samples from the distribution that it tells, over HTTP: truthful ones, others, and a real one."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from prefmh_web.endpoints import probe, truth
from prefmh_web.endpoints.errors import RateLimited
from prefmh_web.endpoints.models import Endpoint, EndpointTest
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.endpoints.truth import MAX_REQUESTS, rare_label
from tests.support.models import Script, chat_reply, logged, status

OBEYED, REFUSED, IGNORED, UNTESTABLE = "obeyed", "refused", "ignored", "cannot be told"
TOKENS = ("A", "B", "Well", "I")


@dataclass
class Voter:
    """A model of four tokens whose server may sample from another distribution than it tells.

    Args:
        logits: of its tokens.
        tells: whether it tells log-probabilities, which are those before any change.
        told: what it tells for its logits is that many times as steep.
        top_k, top_p, min_p: truncations, after the temperature; without effect as they stand.
        sharpened: by how much its temperature is divided.
        constrains: whether it constrains its replies, where it is asked to.
        before: whether it truncates before the temperature.
    """

    logits: tuple[float, ...] = (2.5, 0.0, 0.5, -1.0)
    tells: bool = True
    told: float = 1.0
    top_k: int = 4
    top_p: float = 1.0
    min_p: float = 0.0
    sharpened: float = 1.0
    constrains: bool = True
    before: bool = False

    def __call__(self, body: dict) -> dict:
        if "temperature" not in body:
            return {}
        logits = np.array(self.logits)
        if body.get("logprobs"):
            if not self.tells:
                return chat_reply("A")
            logs = np.log(_softmax(self.told * logits))
            top = [{"token": token, "logprob": float(log)} for token, log in zip(TOKENS, logs, strict=True)]
            return chat_reply("A", logprobs=logged("A", top))
        if self.constrains and (constrained := body.get("structured_outputs")):
            if "A" not in constrained["choice"]:
                return chat_reply(constrained["choice"][0])
            logits[2:] = -np.inf
        temperature, keeps = body["temperature"] / self.sharpened, self.obeying(body)
        distribution = keeps.cut(_softmax(logits / (1 if self.before else temperature)))
        distribution = distribution ** (1 / temperature if self.before else 1)
        drawn = np.random.default_rng(body["seed"]).choice(len(TOKENS), p=distribution / distribution.sum())
        return chat_reply(TOKENS[drawn])

    def obeying(self, body: dict) -> "Voter":
        """Return itself as a request tells it to truncate, beyond what it does anyway."""
        top_k = body.get("top_k") or self.top_k
        return replace(
            self, top_k=top_k, top_p=min(self.top_p, body["top_p"]), min_p=max(self.min_p, body.get("min_p", 0.0))
        )

    def cut(self, distribution: np.ndarray) -> np.ndarray:
        order = np.argsort(-distribution)
        kept = (np.cumsum(distribution[order]) - distribution[order] < self.top_p) & (
            np.arange(len(distribution)) < self.top_k
        )
        distribution[order[~kept]] = 0
        distribution[distribution < self.min_p * distribution.max()] = 0
        return distribution


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def found(endpoint, script, voter, ask=rare_label, **fields):
    for name, value in fields.items():
        setattr(endpoint, name, value)
    script.answer = voter
    (seen,), failure = ask(endpoint)
    assert failure is None
    return seen


@pytest.mark.parametrize("dialect", [Dialect.VLLM, Dialect.OPENAI])
def test_a_server_that_samples_truly_obeys(scripted, script, dialect):
    seen = found(scripted, script, Voter(constrains=dialect is Dialect.VLLM), dialect=dialect)
    assert seen.effect == OBEYED, seen
    assert "its log-probability says" in seen.evidence


@pytest.mark.parametrize(
    ("distribution", "told"),
    [
        ({"top_p": 0.95}, "sharper or truncated"),
        ({"sharpened": 2.0}, "sharper or truncated"),
        ({"sharpened": 0.5}, "flatter"),
    ],
    ids=str,
)
def test_a_server_that_truncates_sharpens_or_flattens_is_found(scripted, script, distribution, told):
    seen = found(scripted, script, Voter(**distribution))
    assert (seen.effect, told in seen.evidence) == (IGNORED, True), seen


# Of p = .606 and .755 at temperature 1.
FLATTER = Voter(logits=(0.4306, 0.0, -9.0, -9.0), told=2.613)


class TestPairs:
    @pytest.mark.parametrize("dialect", [Dialect.VLLM, Dialect.OPENAI])
    def test_a_truthful_server_passes(self, scripted, script, dialect):
        seen = found(scripted, script, Voter(constrains=dialect is Dialect.VLLM), truth.truth, dialect=dialect)
        assert seen.effect == OBEYED, seen
        assert "to 4 pairs in both orders; log-probabilities say" in seen.evidence
        # Both orders of four pairs are read.
        assert len(script.requests) in (208, 408)

    @pytest.mark.parametrize(
        ("voter", "told"),
        [
            (Voter(top_p=0.8), "sharper or truncated"),
            (Voter(top_p=0.8, before=True), "sharper or truncated"),
            (FLATTER, "flatter"),
        ],
        ids=["top-p .8", "top-p .8 before the temperature", ".755 for .606"],
    )
    def test_another_distribution_is_found(self, scripted, script, voter, told):
        seen = found(scripted, script, voter, truth.truth)
        assert (seen.effect, told in seen.evidence) == (IGNORED, True), seen
        assert len(script.requests) <= truth.MAX_TRUTH

    @pytest.mark.parametrize(
        ("voter", "requests"), [(Voter(logits=(9.0, 0.0, 0.0, 0.0)), 32), (Voter(tells=False), 8)], ids=["sure", "mute"]
    )
    def test_where_no_pair_is_between_nothing_is_claimed(self, scripted, script, voter, requests):
        seen = found(scripted, script, voter, truth.truth)
        assert (seen.effect, len(script.requests)) == (UNTESTABLE, requests)

    def test_pairs_of_somebody_else_are_asked_in_their_place(self, scripted, script):
        chats = [[{"role": "user", "content": f"{order}: A or B?"}] for order in ("this", "that")]
        seen = found(scripted, script, Voter(), lambda endpoint: truth.truth(endpoint, [tuple(chats)]))
        assert (seen.effect, "to 1 pairs" in seen.evidence) == (OBEYED, True), seen
        asked = [body["messages"][0]["content"] for body in script.requests if not body.get("logprobs")]
        assert {asked.count(chat[0]["content"]) for chat in chats} == {100}


class TestWithoutLogProbabilities:
    def test_a_rare_label_that_never_comes_when_it_is_cooler_was_taken_away(self, scripted, script):
        seen = found(scripted, script, Voter(logits=(1.0, 0.0, 0.0, 0.0), tells=False, top_p=0.7))
        assert (seen.effect, "and never in" in seen.evidence) == (IGNORED, True), seen
        assert len(script.requests) < MAX_REQUESTS

    @pytest.mark.parametrize("logits", [(1.0, 0.0, 0.0, 0.0), (9.0, 0.0, 0.0, 0.0)])
    def test_otherwise_it_cannot_be_told(self, scripted, script, logits):
        seen = found(scripted, script, Voter(logits=logits, tells=False))
        assert seen.effect == UNTESTABLE, seen

    def test_a_model_that_says_no_label_cannot_be_told_and_costs_little(self, scripted, script):
        script.answer = lambda body: chat_reply("Well")
        (seen,), failure = rare_label(scripted)
        assert (seen.effect, failure) == (UNTESTABLE, None)
        assert len(script.requests) <= 40

    @pytest.mark.parametrize("ask", [rare_label, truth.truth])
    def test_a_model_that_takes_no_temperature_is_not_asked(self, scripted, script, ask):
        seen = found(scripted, script, Voter(), ask, dialect=Dialect.OPENAI_REASONING)
        assert (seen.effect, script.requests) == (UNTESTABLE, [])


def test_what_it_refuses_is_said(scripted, script):
    script.answer = Voter()
    script.strikes = lambda body: not body.get("logprobs")
    script.faults.append(status(400, b"no such temperature"))
    (seen,), _ = rare_label(scripted)
    assert (seen.effect, "no such temperature" in seen.evidence) == (REFUSED, True)


def after_test(endpoint: Endpoint, script: Script, voter) -> Endpoint:
    """Return the endpoint after *Test*."""
    script.answer = voter
    probe.run(EndpointTest.objects.create(endpoint=endpoint).pk)
    endpoint.refresh_from_db()
    return endpoint


class TestWholeTest:
    def test_a_truthful_server_is_kept_as_one_and_costs_no_more_than_was_told(self, scripted, script):
        scripted.input_price, scripted.output_price = 2.0, 8.0
        scripted.save()
        told = probe.most(scripted)
        endpoint = after_test(scripted, script, Voter())
        assert (endpoint.samples_untruncated, truth.was_tested(endpoint)) == (True, True)
        assert truth.untruncated(endpoint) == (True, endpoint.sampling_evidence)
        assert len(script.requests) < endpoint.profile["requests"] <= told.requests == probe.MAX_REQUESTS
        assert 0 < endpoint.totals.cost <= told.cost < 2
        scripted.input_price = None
        assert probe.most(scripted).cost is None

    def test_another_distribution_refuses_all_votes(self, scripted, script):
        endpoint = after_test(scripted, script, Voter(top_p=0.8))
        assert endpoint.samples_untruncated is False
        assert "does not sample from the distribution that it tells" in truth.differs(endpoint)
        assert truth.untruncated(endpoint) == (False, truth.differs(endpoint))

    def test_what_cannot_be_told_is_not_tested(self, scripted, script):
        endpoint = after_test(scripted, script, Voter(logits=(9.0, 0.0, -9.0, -9.0), tells=False))
        assert (endpoint.samples_untruncated, truth.was_tested(endpoint), truth.differs(endpoint)) == (None, False, "")
        assert "Press Test" in truth.untruncated(endpoint)[1]
        # Another kind has no fields to switch truncation off, whatever is seen.
        endpoint.dialect = Dialect.ANTHROPIC
        assert truth.untruncated(endpoint) == (False, truth.why_untestable(endpoint))

    def test_a_temperature_that_is_ignored_counts_for_sampled_votes_alone(self):
        seen = [{"field": each, "effect": OBEYED, "evidence": "as told"} for each in truth.DISTRIBUTION]
        seen.append({"field": "temperature", "effect": IGNORED, "evidence": "4 seeds"})
        endpoint = Endpoint(base_url="http://a/v1", dialect=Dialect.VLLM, profile={"fields": seen})
        assert (truth.differs(endpoint), truth.untruncated(endpoint)[0]) == ("", False)
        assert "ignores temperature: 4 seeds" in truth.untruncated(endpoint)[1]

    def test_a_server_that_is_busy_leaves_no_verdict(self, scripted, script):
        after_test(scripted, script, Voter())
        script.strikes = lambda body: "You compare two texts" in str(body.get("messages"))
        script.faults.append(status(429, Retry_After="9"))
        endpoint = after_test(scripted, script, Voter())
        assert (endpoint.profile, endpoint.samples_untruncated) == ({}, None)


class TestTemperature:
    def test_one_that_is_obeyed_leaves_one_reply(self, scripted, script):
        seen = found(scripted, script, Voter(), truth.temperature)
        assert (seen.effect, "and 1 with temperature = 0.01" in seen.evidence) == (OBEYED, True), seen

    def test_one_that_is_passed_over_is_found_whatever_the_status(self, scripted, script):
        seen = found(scripted, script, lambda body: Voter()(body | {"temperature": 1.5}), truth.temperature)
        assert seen.effect == IGNORED, seen

    def test_a_server_that_always_says_the_same_cannot_be_told(self, scripted, script):
        assert found(scripted, script, lambda body: chat_reply("A"), truth.temperature).effect == UNTESTABLE

    def test_what_is_not_tried_to_the_end_says_why(self, scripted, script):
        script.answer = Voter()
        script.faults.append(status(429, Retry_After="9"))
        assert isinstance(truth.temperature(scripted)[1], RateLimited)


@pytest.mark.parametrize("ask", [truth.temperature, truth.truth, rare_label])
def test_a_real_server_is_truthful(llama, ask):
    (seen,), failure = ask(llama)
    assert failure is None
    assert seen.effect == OBEYED, seen
