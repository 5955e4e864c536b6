"""Judges that are models: what they are shown, how their replies are read, and votes from their log-probabilities.

Everything here is a function of its arguments. The call itself, and so the network, is the caller's.

    prompts             chat messages as plain data, for one pair or one object
    special_tokens      what a text must not say to a model that judges it
    labels              which object is A and which is B, and what a label then says about the proposal
    replies             a reply to a label or a rating, or the reason why it is neither
    log_probabilities   log-probabilities of the labels to p, and votes drawn from p
    rating_scale        integer ratings and their mean
    attention           which trials people are given between their pairs: checks, and repeats
    truncation          seeing from replies that a server truncates

And judges that are simulated: `bradley_terry`, and `simulate` for whole chains of them.
"""

from sampler.judges.attention import Shares, Trial, check_after, common_pair, repeat_while_waiting
from sampler.judges.labels import in_order, label_is_for_proposal, preference_for_proposal
from sampler.judges.log_probabilities import (
    LOWEST_TEMPERATURE,
    LabelPreference,
    NoPreferenceError,
    checked_temperature,
    drawn_vote,
    label_preference,
)
from sampler.judges.prompts import (
    Exhibit,
    Messages,
    Picture,
    Prompt,
    pairwise_messages,
    pairwise_prompt,
    rating_messages,
    rating_prompt,
)
from sampler.judges.rating_scale import RatingScale, mean_rating
from sampler.judges.replies import LABELS, UnparsableReplyError, parse_label, parse_rating
from sampler.judges.truncation import Truncation, truncation_in

__all__ = [
    "LABELS",
    "LOWEST_TEMPERATURE",
    "Exhibit",
    "LabelPreference",
    "Messages",
    "NoPreferenceError",
    "Picture",
    "Prompt",
    "RatingScale",
    "Shares",
    "Trial",
    "Truncation",
    "UnparsableReplyError",
    "check_after",
    "checked_temperature",
    "common_pair",
    "drawn_vote",
    "in_order",
    "label_is_for_proposal",
    "label_preference",
    "mean_rating",
    "pairwise_messages",
    "pairwise_prompt",
    "parse_label",
    "parse_rating",
    "preference_for_proposal",
    "rating_messages",
    "rating_prompt",
    "repeat_while_waiting",
    "truncation_in",
]
