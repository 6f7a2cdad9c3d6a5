"""The bills on the page about AWS are what the prices say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BILLS = runpy.run_path(str(ROOT / "docs" / "bills.py"))


def test_the_page_has_the_bills_of_today() -> None:
    page = BILLS["PAGE"].read_text()
    for plan in BILLS["PLANS"]:
        assert f"Price of {plan.environment} in us-east-1" in page
    assert BILLS["merged"](page) == page, "run: python docs/bills.py"
