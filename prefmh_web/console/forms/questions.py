"""The questions of a campaign, each with its budget N."""

from django import forms

from prefmh_web.campaigns.models import Campaign


class QuestionForm(forms.Form):
    """One judge: a question and its budget N."""

    question = forms.CharField(
        max_length=300, widget=forms.TextInput(attrs={"placeholder": "Which one would you rather read on?"})
    )
    budget = forms.IntegerField(min_value=1, max_value=1000, initial=2, label="Votes (N)")


class _QuestionFormSet(forms.BaseFormSet):
    def judges(self) -> list[dict]:
        """Return the filled-in questions as the recipe's judges."""
        filled = (form.cleaned_data for form in self.forms if form.cleaned_data)
        return [{"question": data["question"], "budget": data["budget"]} for data in filled]


QuestionFormSet = forms.formset_factory(
    QuestionForm, formset=_QuestionFormSet, extra=0, min_num=1, validate_min=True, max_num=8, validate_max=True
)


def questions_of(campaign: Campaign) -> list[dict]:
    """Return a campaign's judges as the formset's initial values."""
    return [{"question": judge["question"], "budget": judge["budget"]} for judge in campaign.recipe["judges"]]
