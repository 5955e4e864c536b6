"""The paper's experiments as campaigns: `manage.py experiment`.

configs       what is run, a file for each experiment, registered in `CONFIGS`
campaigns     the campaigns of a run: found again, made, started and waited for
lockstep_part parts that are no campaigns: MARS, whose proposals are learned
evaluation    what is asked about states afterwards, each answer stored once
calls         what asking models took, as calls.csv
folder        the run's folder: settings.json, records, tables
"""
