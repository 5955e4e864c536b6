"""The columns of the record: documented in order, and read by no name that nobody writes."""

import ast
import re
from pathlib import Path

import pytest

from sampler import schema

ROOT = Path(__file__).parents[2]
# Each with every column that it can have.
WIDE = {
    schema.STEPS.name: schema.steps_table(True, True),
    schema.SAMPLES.name: schema.SAMPLES_WITH_PHASES,
}
NOT_ALWAYS = (
    schema.COLUMNS,
    schema.CHAINS,
    schema.SUSPENDED,
    schema.CALLS,
    schema.SCORES,
    schema.EXTENSIONS,
)
TABLES = [WIDE.get(table.name, table) for table in (*schema.TABLES, *NOT_ALWAYS)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_documents_tell_of_each_column_in_order(table: schema.Table) -> None:
    text = (ROOT / "docs/record-format.md").read_text()
    rows = text.partition(f"## {table.file}\n")[2].partition("\n## ")[0].splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == table.header


def test_the_sampler_reads_no_column_that_nobody_writes() -> None:
    written = {name for table in (*TABLES, schema.CHECKS_WITH_KINDS, schema.PROPERTIES) for name in table.header}
    read = {
        node.slice.value
        for folder in ("record", "diagnostics")
        for path in sorted((ROOT / "sampler" / folder).glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript)
        and ast.unparse(node.value) in ("row", "vote")
        and isinstance(node.slice, ast.Constant)
    }
    assert {"proposal_side", "log_r0", "content", "slot"} <= read <= written
