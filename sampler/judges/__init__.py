"""Judges that are models: what they are shown, how their replies are read, and votes from their log-probabilities.

Everything here is a function of its arguments. The call itself, and so the network, is the caller's.

    prompts             chat messages as plain data, for one pair or one object
    templates           prompts of the researcher's own: their places, and what does not fit
    own_prompts         these with their places filled; short hashes of prompts
    presets             prompts to begin with: the paper's criteria, and the experiments' roles
    context             what is shown with objects, from the further columns of their list
    special_tokens      what a text must not say to a model that judges it
    labels              which object is A and which is B, and what a label then says about the proposal
    replies             a reply to a label or a rating, or the reason why it is neither
    log_probabilities   log-probabilities of the labels to p, and votes drawn from p
    rating_scale        integer ratings and their mean
    detection           what is shown to a model that says whether something is in an object
    attention           which trials people are given between their pairs: checks, and repeats
    truth               seeing from replies whether a server samples from the law that it tells

And judges that are simulated: `bradley_terry`, and `simulate` for whole chains of them.
"""

from sampler.judges.attention import Shares, Trial, check_after, trials_after
from sampler.judges.own_prompts import (
    PRESETS,
    AnyPrompt,
    OwnPrompt,
    Preset,
    detection_prompt,
    named_in,
    presets_for,
    prompt_version,
    stored_prompt,
)
from sampler.judges.prompts import (
    Context,
    ContextLine,
    Exhibit,
    Messages,
    Picture,
    Prompt,
    SharedContext,
    pairwise_messages,
    pairwise_prompt,
    picture_part,
    rating_messages,
    rating_prompt,
    shared_context,
)
from sampler.judges.replies import (
    LABELS,
    LOWEST_TEMPERATURE,
    YES_OR_NO,
    LabelPreference,
    NoDistributionError,
    NoPreferenceError,
    RatingScale,
    UnparsableReplyError,
    checked_temperature,
    distribution,
    drawn_vote,
    in_order,
    label_is_for_proposal,
    label_preference,
    mean_rating,
    parse_label,
    parse_rating,
    parse_yes_or_no,
    preference_for_proposal,
)
from sampler.judges.templates import (
    LONGEST_TEMPLATE,
    Fitting,
    PromptTemplate,
    known_places,
    template_of,
    template_problems,
)
from sampler.judges.truth import (
    ERROR,
    REPLIES,
    Agreement,
    Asked,
    Fit,
    Tilt,
    agreement,
    fit_of,
    least_rate,
    tilt_of,
)

__all__ = [
    "ERROR",
    "LABELS",
    "LONGEST_TEMPLATE",
    "LOWEST_TEMPERATURE",
    "PRESETS",
    "REPLIES",
    "YES_OR_NO",
    "Agreement",
    "AnyPrompt",
    "Asked",
    "Context",
    "ContextLine",
    "Exhibit",
    "Fit",
    "Fitting",
    "LabelPreference",
    "Messages",
    "NoDistributionError",
    "NoPreferenceError",
    "OwnPrompt",
    "Picture",
    "Preset",
    "Prompt",
    "PromptTemplate",
    "RatingScale",
    "SharedContext",
    "Shares",
    "Tilt",
    "Trial",
    "UnparsableReplyError",
    "agreement",
    "check_after",
    "checked_temperature",
    "detection_prompt",
    "distribution",
    "drawn_vote",
    "fit_of",
    "in_order",
    "known_places",
    "label_is_for_proposal",
    "label_preference",
    "least_rate",
    "mean_rating",
    "named_in",
    "pairwise_messages",
    "pairwise_prompt",
    "parse_label",
    "parse_rating",
    "parse_yes_or_no",
    "picture_part",
    "preference_for_proposal",
    "presets_for",
    "prompt_version",
    "rating_messages",
    "rating_prompt",
    "shared_context",
    "stored_prompt",
    "template_of",
    "template_problems",
    "tilt_of",
    "trials_after",
]
