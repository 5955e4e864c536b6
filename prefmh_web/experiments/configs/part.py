"""One campaign of a run, and what the configs of all experiments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sampler
from sampler import judges


@dataclass(frozen=True)
class Part:
    """One campaign of a run.

    Args:
        options: of the run.
        method: whose row of the table it is.
        direction: the name of its inputs; empty where there is one set only.
        seed: of its chains.
        endpoints: names of endpoints, by role.
        inputs: the prompts of its direction that there are, in order; see `prompts`.
        scorers: names of scorers, by role.
        vocabulary: the arms of molecules, as the config of their space has them.
    """

    options: sampler.ExperimentOptions
    method: sampler.ExperimentMethod
    direction: str
    seed: int
    endpoints: Mapping[str, str]
    inputs: Sequence[str] = ()
    scorers: Mapping[str, str] = field(default_factory=dict)
    vocabulary: Literal["default"] | tuple[str, ...] = "default"

    @property
    def name(self) -> str:
        """As the record's file has it, without its ending."""
        return sampler.outputs.record_name(self.method.name, self.direction, self.seed).removesuffix(".zip")

    @property
    def prompts(self) -> list[str]:
        """The prompts that the run has, in order: chain c answers number c modulo their count."""
        return list(self.inputs[: self.options.direction(self.direction).inputs])

    @property
    def chains(self) -> int:
        """How many chains it has."""
        return self.options.chains_of(self.options.direction(self.direction))

    def setting(self, name: str) -> Any:
        """Return the value of one of the experiment's settings; at the laptop's scale its own, where it has one.

        Raises:
            KeyError: there is none.
        """
        values = {each.name: each.value for each in self.options.of_experiment.settings}
        return values.get(f"{name}_{self.options.scale}", values[name])

    def frame(self, **fields: Any) -> dict[str, Any]:
        """Return a config of these fields, with judges, rule, chains, steps and seed."""
        return {
            "version": 1,
            "judges": [self._judge(asked) for asked in self.method.judges],
            "rule": self._rule(),
            "chains": self.chains,
            "steps": self.options.steps_of(self.method),
            "seed": self.seed,
            **fields,
        }

    def _rule(self) -> dict[str, Any]:
        given: Mapping[str, Any] = self.method.parameters
        kind = self.method.rule
        if kind == "quest":
            return {"kind": kind, "scorer": self.scorers["quality"], "beta": given["beta"]}
        if kind != "pointwise":
            return {"kind": kind} if kind != "score" else {"kind": kind, "form": given["score"], "beta": given["beta"]}
        lowest, highest = given["scale"]
        beta = {"beta": given["beta"]} if given["form"] == "power" else {}
        return {"kind": kind, "form": given["form"], "lowest": lowest, "highest": highest, **beta}

    def _judge(self, asked: sampler.Asked) -> dict[str, Any]:
        source = {
            "kind": "model",
            "endpoint": self.endpoints[asked.role],
            "temperature": self.setting("judge_temperature"),
            "prompt": judges.PRESETS[asked.preset].template.model_dump(mode="json"),
        }
        if self.method.rule == "n-vote":
            source["votes"] = self.options.votes
        return {"question": asked.question, "votes": self.method.asks, "order": self._order(asked), "source": source}

    def _order(self, asked: sampler.Asked) -> str:
        order = str(self.method.parameters.get("order", "random"))
        if order != "two-judge":
            return order
        # Two judges of one question, told apart by whose object stands first.
        return "proposal-first" if asked.name.endswith("proposal-first") else "proposal-second"
