"""What a campaign is: one declaration, of which the form, the file, the API and the record are made.

campaign    the configuration of a campaign
study       the part of it about people
"""

from prefmh_web.config.campaign import (
    LONGEST_NAME,
    Answering,
    CampaignConfig,
    Caps,
    Language,
    Name,
    UploadedFile,
    json_schema,
)
from prefmh_web.config.study import (
    MINUTES_TO_RETURN,
    USUAL_PAY,
    USUAL_WAIT_MINUTES,
    EarlierCampaign,
    Outcome,
    Pay,
    Protocol,
    Study,
)
