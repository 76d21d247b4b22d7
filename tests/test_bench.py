"""What the table of speed is made of: counted operations, ratios, failures that are shown."""

import json
import math

from bench.report import Row, lines, read_row, write
from bench.rows.towers import image_flops

from wordlight.clip.config import TransformerConfig, VitConfig


def test_operations_of_a_small_tower_by_hand():
    """Four patches and a class token, two wide, one block with an MLP of eight: only the class token asks."""
    tower = VitConfig((4, 4), 2, TransformerConfig(2, 1, 1, 8))
    keys_and_values, scores_and_mixing = 5 * (2 * 2 * 2), 2 * 5 * 2
    query_output_and_mlp = 2 * 2 * 2 + 2 * 2 * 8
    patches = 4 * (3 * 2 * 2) * 2
    assert image_flops(tower) == 2 * (keys_and_values + scores_and_mixing + query_output_and_mlp + patches)


def test_vit_b_32_has_the_published_number_of_operations():
    """4.41 billion multiplications, each with its sum, in the table of torchvision, which computes the last
    block of all tokens."""
    tower = VitConfig((224, 224), 32, TransformerConfig(768, 12, 12, 3072))
    left_out = 49 * (2 * 768 * 768 + 2 * 768 * 3072 + 2 * 50 * 768)
    assert math.isclose(image_flops(tower) / 2 + left_out, 4.4e9, rel_tol=0.02)


def test_a_ratio_above_one_means_that_wordlight_needs_less():
    row = Row("1", "work", {"Wordlight": 0.5, "Flax": 0.6}, limit=0.4, notes=("a note",))
    assert lines(row) == [
        "| 1 | work | Wordlight | 0.5 s | 1.00 |",
        "|  |  | Flax | 0.6 s | 1.20 |",
        "| | | limit | 0.4 s | 0.80 |",
        "| | a note | | | |",
    ]


def test_a_route_that_did_not_run_is_shown_with_its_reason():
    row = Row("1", "work", {"Wordlight": 0.5}, failed=(("torchax", "ImportError: no torchax"),))
    assert "| | | torchax | did not run: ImportError: no torchax | |" in lines(row)


def test_rows_that_are_not_measured_again_are_kept(tmp_path):
    files = (tmp_path / "results.json", tmp_path / "speed.md")
    first = Row("1", "work", {"Wordlight": 1.0}, failed=(("Flax", "no Flax"),))
    write([first, Row("10", "object", {"Wordlight": 9.0})], *files)
    write([Row("2", "other", {"Wordlight": 2.0})], *files)
    again = Row("10", "object", {"Wordlight": 8.0}, notes=("quiet",))
    write([again], *files)
    kept = [read_row(row) for row in json.loads(files[0].read_text())["rows"]]
    assert kept == [first, Row("2", "other", {"Wordlight": 2.0}), again]
    assert files[1].read_text().index("| 2 |") < files[1].read_text().index("| 10 |")


def test_older_titles_go_once_a_number_is_complete(tmp_path):
    files = (tmp_path / "results.json", tmp_path / "speed.md")
    write([Row("1", "old title", {"Wordlight": 1.0}), Row("2", "other", {"Wordlight": 2.0})], *files)
    for complete, titles in ((False, ["old title", "new title", "other"]), (True, ["new title", "other"])):
        write([Row("1", "new title", {"Wordlight": 1.0})], *files, complete=complete)
        assert [row["title"] for row in json.loads(files[0].read_text())["rows"]] == titles


def test_rows_of_another_machine_are_not_kept(tmp_path):
    files = (tmp_path / "results.json", tmp_path / "speed.md")
    write([Row("1", "work", {"Wordlight": 1.0})], *files)
    found = json.loads(files[0].read_text())
    files[0].write_text(json.dumps(found | {"machine": "another"}))
    write([Row("2", "other", {"Wordlight": 2.0})], *files)
    assert [row["number"] for row in json.loads(files[0].read_text())["rows"]] == ["2"]
