"""What docs/streams.md says of detectors is what the kept runs say, and docs/results.md with it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "results" / "detection.md"


def cells(path: Path, heading: str) -> dict[tuple[str, str], str]:
    """The table that begins with a heading, by detector and stream; accuracies are left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    table = lines[lines.index(heading) :]
    streams = [cell.split()[0] for cell in table[0].strip("| ").split("|")]
    found = {}
    for line in table[2:]:
        if not line.startswith("|"):
            break
        name, *values = [cell.strip() for cell in line.strip("|").split("|")]
        for stream, value in zip(streams, values, strict=True):
            found[name.strip("`"), stream] = value.split(";")[0]
    return found


def kept() -> dict[tuple[str, str], str]:
    return cells(KEPT, "| | sea | sine | usenet1 | usenet2 |")


def test_the_detectors_on_both_pages_are_those_of_the_kept_runs() -> None:
    streams = cells(
        ROOT / "docs" / "streams.md", "| | sine (abrupt) | usenet1 | usenet2 | sea (slight) |"
    )
    assert len(streams) == 24
    assert streams.items() <= kept().items()
    results = cells(ROOT / "docs" / "results.md", "| | sea | sine | usenet1 | usenet2 |")
    assert results == kept()


def test_hddm_w_finds_more_than_the_default_and_nothing_that_is_not_there() -> None:
    def found(name: str) -> int:
        return sum(int(cell.split("/")[0]) for (who, _), cell in kept().items() if who == name)

    def false_alarms(name: str) -> int:
        return sum(int(cell.split(", ")[2]) for (who, _), cell in kept().items() if who == name)

    assert (found("hddm_w"), found("adwin")) == (12, 8)
    assert (false_alarms("hddm_w"), false_alarms("adwin")) == (0, 8)
