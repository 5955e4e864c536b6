"""The upload of a setup's file."""

from django import forms

from prefmh_web.setup.files import MAX_FILE_BYTES, NAME


class SetupFileForm(forms.Form):
    """One file; `setup.files` says what is wrong with it."""

    file = forms.FileField(
        label="Your file",
        help_text=f"A {NAME} alone, or a ZIP with {NAME} and the list that it names, as “Download the setup” gives it. "
        f"At most {MAX_FILE_BYTES // 2**20} MiB.",
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.zip"}),
    )
