"""Judges that are models: what they are shown, how their replies are read, and votes from their log-probabilities.

Everything here is a function of its arguments. The call itself, and so the network, is the caller's.

    config          what a config says of judges: the question, the votes, who answers; panels
    prompts         chat messages as plain data, for one pair or one object; templates of them and what does not fit
    replies         a reply to a label or a rating, or why it is neither; log-probabilities of the labels to p; seeing
                    from replies whether a server samples from the distribution that it reports
    presentation    which side shows what, and which trials people are given between their pairs
"""

from sampler.judges.presentation import InsertedTrial as InsertedTrial
from sampler.judges.presentation import TrialShares as TrialShares
from sampler.judges.presentation import check_after as check_after
from sampler.judges.presentation import trials_after as trials_after
from sampler.judges.prompts import LONGEST_TEMPLATE as LONGEST_TEMPLATE
from sampler.judges.prompts import PRESETS as PRESETS
from sampler.judges.prompts import Context as Context
from sampler.judges.prompts import ContextLine as ContextLine
from sampler.judges.prompts import Fitting as Fitting
from sampler.judges.prompts import Messages as Messages
from sampler.judges.prompts import Picture as Picture
from sampler.judges.prompts import Prompt as Prompt
from sampler.judges.prompts import PromptTemplate as PromptTemplate
from sampler.judges.prompts import SharedContext as SharedContext
from sampler.judges.prompts import ShownObject as ShownObject
from sampler.judges.prompts import detection_prompt as detection_prompt
from sampler.judges.prompts import known_placeholders as known_placeholders
from sampler.judges.prompts import pairwise_prompt as pairwise_prompt
from sampler.judges.prompts import picture_part as picture_part
from sampler.judges.prompts import rating_prompt as rating_prompt
from sampler.judges.prompts import shared_context as shared_context
from sampler.judges.prompts import stored_prompt as stored_prompt
from sampler.judges.prompts import template_problems as template_problems
from sampler.judges.replies import ERROR as ERROR
from sampler.judges.replies import LABELS as LABELS
from sampler.judges.replies import REPLIES as REPLIES
from sampler.judges.replies import YES_OR_NO as YES_OR_NO
from sampler.judges.replies import Agreement as Agreement
from sampler.judges.replies import AskedPresentation as AskedPresentation
from sampler.judges.replies import NoDistributionError as NoDistributionError
from sampler.judges.replies import NoPreferenceError as NoPreferenceError
from sampler.judges.replies import RareLabel as RareLabel
from sampler.judges.replies import RatingScale as RatingScale
from sampler.judges.replies import UnparsableReplyError as UnparsableReplyError
from sampler.judges.replies import agreement as agreement
from sampler.judges.replies import checked_temperature as checked_temperature
from sampler.judges.replies import distribution as distribution
from sampler.judges.replies import drawn_vote as drawn_vote
from sampler.judges.replies import fit_of as fit_of
from sampler.judges.replies import in_order as in_order
from sampler.judges.replies import label_is_for_proposal as label_is_for_proposal
from sampler.judges.replies import label_preference as label_preference
from sampler.judges.replies import min_rate as min_rate
from sampler.judges.replies import parse_label as parse_label
from sampler.judges.replies import parse_rating as parse_rating
from sampler.judges.replies import parse_yes_or_no as parse_yes_or_no
from sampler.judges.replies import preference_for_proposal as preference_for_proposal
from sampler.judges.replies import rare_label_of as rare_label_of
from sampler.judges.replies import shown as shown
