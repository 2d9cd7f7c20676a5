"""A build from end to end: what is in the files, and what moves no byte of them."""

import ast
import base64
import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest
import torch

import degrade
from degrade import mixture
from degrade.build import build, estimate, replay, variants, verify
from degrade.builder import pixels
from degrade.config import BuildConfig, ConfigError
from degrade.data import images, manifest
from degrade.data.staging import FolderError

from .conftest import QUICK, digests, picture, write_tsv

Configure = Callable[..., BuildConfig]
STEMS = ["CLEAN", "LOW_LEVEL_HIGH", "LOW_LEVEL_LOW", "LOW_LEVEL_MID", "block_exchange", "lens_blur"]


def table(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def decoded(cell: str) -> torch.Tensor:
    return images.decode(base64.b64decode(cell, validate=True))


def test_files_of_a_build(benchmark: Path, configure: Configure) -> None:
    report = build(configure(benchmark))
    assert report.ok
    assert [path.name for path in report.files] == [f"MMStar_{stem}.tsv" for stem in STEMS]
    names = {f"MMStar_{stem}{suffix}" for stem in STEMS for suffix in (".tsv", ".manifest.jsonl")}
    assert {path.name for path in report.output.iterdir()} == names | {"build.json", "vlmevalkit.json"}
    assert [(bad.index, bad.reason) for bad in report.empty] == [("12", "no image")]
    config = json.loads((report.output / "vlmevalkit.json").read_text())
    assert config["data"]["MMStar_LOW_LEVEL_MID"] == {"class": "ImageMCQDataset", "dataset": "MMStar_LOW_LEVEL_MID"}


def test_text_passes_through_and_images_come_back(benchmark: Path, configure: Configure) -> None:
    report = build(configure(benchmark))
    source = table(benchmark)
    for path in report.files:
        rows = table(path)
        assert [{**row, "image": ""} for row in rows] == [{**row, "image": ""} for row in source]
        cells = {row["index"]: row["image"] for row in rows}
        # a reference points straight at the row that holds the image
        assert (cells["1000007"], cells["8"], cells["10"], cells["12"]) == ("7", "9", "9", "")
        assert decoded(cells["7"]).shape == (3, 24, 40)
        assert decoded(cells["9"]).shape == (3, 37, 33)
        assert [decoded(part).shape for part in ast.literal_eval(cells["11"])] == [(3, 24, 40)] * 2


def test_pandas_reads_ours_as_it_reads_the_source(benchmark: Path, configure: Configure) -> None:
    source = pandas.read_csv(benchmark, sep="\t").drop(columns="image")
    for path in build(configure(benchmark)).files:
        pandas.testing.assert_frame_equal(pandas.read_csv(path, sep="\t").drop(columns="image"), source)


def test_pixels_are_those_of_apply(benchmark: Path, configure: Configure) -> None:
    report = build(configure(benchmark, codec="png", seed=5))
    image = decoded(picture(1))
    for path in report.files:
        got = decoded(table(path)[0]["image"])
        head = manifest.header(path.with_name(path.stem + manifest.SUFFIX))["variant"]
        operator = head["operator"] or mixture.choose(QUICK_IN_ORDER, 5, "MMStar/7")
        expected = image if head["kind"] == "clean" else degrade.apply(image, operator, head["severity"], seed=5, keys="MMStar/7")
        assert torch.equal(got, expected), path.name


QUICK_IN_ORDER = {name: QUICK[name] for name in degrade.OPERATORS if name in QUICK}


def test_one_operator_a_row_at_all_severities_and_in_lists(benchmark: Path, configure: Configure) -> None:
    output = build(configure(benchmark)).output
    mixed = [[*manifest.lines(output / f"MMStar_LOW_LEVEL_{level}.manifest.jsonl")] for level in ("LOW", "MID", "HIGH")]
    assert len({line["record"]["operator"] for line in mixed[0] if line["status"] == "ok"}) > 1
    for low, mid, high in zip(*mixed, strict=True):
        if low["status"] == "ok":
            assert low["record"]["operator"] == mid["record"]["operator"] == high["record"]["operator"]
            assert [line["record"]["intensity"] for line in (low, mid, high)] == [0.23, 0.45, 0.9]
    lists = [line for line in mixed[0] if line["index"] == "11"]
    assert [line["key"] for line in lists] == ["MMStar/11#0", "MMStar/11#1"]
    assert lists[0]["record"]["operator"] == lists[1]["record"]["operator"]


def test_manifest_lines(benchmark: Path, configure: Configure) -> None:
    output = build(configure(benchmark)).output
    lines = list(manifest.lines(output / "MMStar_lens_blur.manifest.jsonl"))
    assert [(line["row"], line["index"], line["status"]) for line in lines] == [
        (0, "7", "ok"),
        (1, "1000007", "reference"),
        (2, "8", "reference"),
        (3, "9", "ok"),
        (4, "10", "reference"),
        (5, "11", "ok"),
        (5, "11", "ok"),
        (6, "12", "empty"),
        (7, "13", "ok"),
    ]
    assert [line["payload"] for line in lines if line["status"] == "reference"] == [0, 3, 3]
    assert lines[3]["size"] == [33, 37]


@pytest.mark.parametrize("more", [{"workers": 2}, {"workers": 4, "batch": 1}, {"batch": 32}])
def test_workers_and_batches_move_no_byte(benchmark: Path, configure: Configure, more: dict[str, int]) -> None:
    one, two = build(configure(benchmark, "one")), build(configure(benchmark, "two", **more))
    assert digests(one.output) == digests(two.output)


def test_neighbours_of_one_size_are_degraded_together_where_that_pays(
    tmp_path: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(str(n), picture(n, (40, 24) if n % 3 else (24, 40))) for n in range(6)]
    source = write_tsv(tmp_path / "s" / "sizes.tsv", ("index", "image"), rows)
    sizes: list[int] = []
    apply = degrade.apply
    monkeypatch.setattr(degrade, "apply", lambda batch, *args, **more: (sizes.append(len(batch)), apply(batch, *args, **more))[1])
    settings = {"operators": ["lens_blur"], "severities": ["low"], "mixture": {"gaussian_noise": 1}}  # two degraded variants
    one = build(configure(source, "one", **settings))  # one row at a time
    assert sizes == [1] * 12
    sizes.clear()
    monkeypatch.setattr(pixels, "window_of", lambda where, batch: 16)  # as on an accelerator
    two = build(configure(source, "two", **settings))
    assert sorted(sizes) == [2, 2, 4, 4]
    assert digests(one.output) == digests(two.output)


def test_neither_place_nor_other_sources_move_a_byte(benchmark: Path, configure: Configure, tmp_path: Path) -> None:
    alone = build(configure(benchmark, "alone"))
    folder = tmp_path / "elsewhere"
    for name in ("AAA", "zzz"):
        write_tsv(folder / f"{name}.tsv", ("index", "image"), [("7", picture(4))])
    (folder / "mm-star.tsv").write_bytes(benchmark.read_bytes())
    together = build(configure(folder, "together"))
    of_mmstar = {name: digest for name, digest in digests(together.output).items() if name.startswith("MMStar")}
    assert of_mmstar == {name: digest for name, digest in digests(alone.output).items() if name.startswith("MMStar")}
    assert len(together.files) == 3 * len(STEMS)


def test_each_image_is_decoded_once(benchmark: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    count = []
    decode = images.decode
    monkeypatch.setattr(images, "decode", lambda *args, **kwargs: (count.append(1), decode(*args, **kwargs))[1])
    build(configure(benchmark))
    assert len(count) == 5


def test_the_seed_moves_draws_and_nothing_global_is_touched(benchmark: Path, configure: Configure) -> None:
    state = torch.get_rng_state()
    one, two = build(configure(benchmark, "one")), build(configure(benchmark, "two", seed=1))
    assert torch.equal(state, torch.get_rng_state())
    assert (one.output / "MMStar_CLEAN.tsv").read_bytes() == (two.output / "MMStar_CLEAN.tsv").read_bytes()
    assert (one.output / "MMStar_block_exchange.tsv").read_bytes() != (two.output / "MMStar_block_exchange.tsv").read_bytes()


def test_the_order_of_a_mixture_decides_nothing(benchmark: Path, configure: Configure) -> None:
    one = build(configure(benchmark, "one", variants=["mixed"]))
    two = build(configure(benchmark, "two", variants=["mixed"], mixture=dict(reversed(QUICK.items()))))
    assert digests(one.output) == digests(two.output)


def test_more_variants_are_added_and_other_settings_refused(benchmark: Path, configure: Configure) -> None:
    build(configure(benchmark, variants=["mixed"], severities=["low"]))
    output = Path(configure(benchmark).output)
    first = digests(output)
    build(configure(benchmark))
    after = digests(output)
    assert {name for name in first if first[name] != after[name]} == {"vlmevalkit.json"}
    assert after == digests(build(configure(benchmark, "fresh")).output)
    for change, named in (({"seed": 1}, r"seed \(there: 0, now: 1\)"), ({"quality": 90}, "quality"), ({"codec": "png"}, "codec")):
        with pytest.raises(FolderError, match=named):
            build(configure(benchmark, **change))
    with pytest.raises(FolderError, match=r"settings: codec \(there: jpeg, now: png\)\. Choose"):  # the quality goes with it
        build(configure(benchmark, codec="png"))
    with pytest.raises(FolderError, match=r"settings: mixture \(lens_blur there: 0, now: 1; scan_lines there: 1, now: 3\)\. Choose"):
        build(configure(benchmark, mixture=QUICK | {"scan_lines": 3, "lens_blur": 1}))
    assert digests(output) == after
    fresh = build(configure(benchmark, seed=1, overwrite=True))
    assert digests(fresh.output) == digests(build(configure(benchmark, "seed1", seed=1)).output)


def test_another_source_of_the_same_name_is_refused(benchmark: Path, configure: Configure) -> None:
    build(configure(benchmark))
    write_tsv(benchmark, ("index", "image"), [("7", picture(9))])
    with pytest.raises(FolderError, match="the source of MMStar"):
        build(configure(benchmark))


def test_a_finished_build_is_left_alone(benchmark: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digests(build(configure(benchmark)).output)
    monkeypatch.setattr(images, "decode", lambda *_, **__: pytest.fail("decoded again"))
    report = build(configure(benchmark))
    assert digests(report.output) == before
    assert [bad.index for bad in report.empty] == ["12"]
    assert len(report.files) == len(STEMS)


def test_a_foreign_file_is_not_overwritten(benchmark: Path, configure: Configure, tmp_path: Path) -> None:
    foreign = tmp_path / "out" / "MMStar_CLEAN.tsv"
    foreign.parent.mkdir()
    foreign.write_text("mine")
    with pytest.raises(FolderError, match="is there without a manifest"):
        build(configure(benchmark))
    assert foreign.read_text() == "mine"


def test_names(benchmark: Path, configure: Configure) -> None:
    config = configure(benchmark, severities=[0.5, "low"], per_operator_severities=["high", "mid", 0.125], operators=["graffiti"], tag="v2")
    assert [variant.stem("B", config.tag) for variant in variants(config)] == [
        "B_LOW_LEVEL_I0500-v2",
        "B_LOW_LEVEL_LOW-v2",
        "B_graffiti-v2",
        "B_graffiti_MID-v2",
        "B_graffiti_I0125-v2",
        "B_CLEAN-v2",
    ]
    full = [variant.stem("B") for variant in variants(BuildConfig())]
    assert len(full) == 3 + len(degrade.OPERATORS) + 1


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"severities": [0.12345]}, "three decimals"),
        ({"tag": "a/b"}, "tag"),
        ({"alpha": "wite"}, "alpha"),
        ({"variants": []}, "nothing to write"),
        ({"severities": []}, "severities: got an empty list, and variants has mixed"),
        ({"variants": ["per_operator"], "per_operator_severities": []}, "per_operator_severities: got an empty list"),
        ({"operators": ["lens_blurr"]}, "lens_blur"),
        ({"device": "nonsense"}, "device"),
    ],
)
def test_settings_that_cannot_be_used(benchmark: Path, configure: Configure, more: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        build(configure(benchmark, **more))
    assert not Path(configure(benchmark).output).exists()


def test_an_estimate_writes_nothing(benchmark: Path, configure: Configure, tmp_path: Path) -> None:
    guess = estimate(configure(benchmark))
    assert (len(guess.files), guess.done, guess.rows, guess.images) == (len(STEMS), [], 8, 4)
    assert guess.bytes > 0
    assert guess.seconds > 0
    assert not (tmp_path / "out").exists()
    build(configure(benchmark))
    guess = estimate(configure(benchmark))
    assert (guess.files, len(guess.done), guess.bytes) == ([], len(STEMS), 0)


@pytest.mark.parametrize("kind", ["tsv", "parquet", "tar"])
def test_an_estimate_counts_text(configure: Configure, tmp_path: Path, kind: str) -> None:
    guesses = []
    for name, question in (("short", ""), ("long", "\u4e2d" * 100_000)):
        path = write_tsv(tmp_path / f"{name}.tsv", ("index", "image", "question"), [("1", picture(1), question), ("2", "1", question)])
        if kind != "tsv":
            writer = "webdataset" if kind == "tar" else kind
            path = build(configure(path, name, writer=writer, variants=["clean"])).files[0]
        guesses.append(estimate(configure(path)).bytes)
    assert guesses[1] - guesses[0] == pytest.approx(len(STEMS) * 2 * 300_000, rel=0.01)


def test_a_seed_of_any_size(benchmark: Path, configure: Configure) -> None:
    seeds = (10**30, 10**30 + 1)
    outputs = [build(configure(benchmark, f"{seed}", seed=seed, variants=["mixed"], severities=["high"])).output for seed in seeds]
    assert json.loads((outputs[0] / "build.json").read_text())["seed"] == 10**30
    assert verify(outputs[0]).ok
    assert digests(outputs[0]) != digests(outputs[1])


def test_what_is_announced_and_how_far_it_is(benchmark: Path, configure: Configure) -> None:
    told: list[object] = []
    build(configure(benchmark), progress=lambda done, total: told.append((done, total)), announce=told.append)
    assert told[0] == estimate(configure(benchmark, "other"))
    assert told[-1] == (8, 8)


def test_stale_caches_are_named(benchmark: Path, configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    cache = tmp_path / "lmu" / "images" / "MMStar_CLEAN"
    cache.mkdir(parents=True)
    assert build(configure(benchmark)).stale == [cache]


@pytest.mark.parametrize("stem", STEMS)
def test_any_image_again(benchmark: Path, configure: Configure, stem: str) -> None:
    output = build(configure(benchmark)).output
    cells = {row["index"]: row["image"] for row in table(output / f"MMStar_{stem}.tsv")}
    for index, cell in [("7", cells["7"]), ("1000007", cells["7"]), ("10", cells["9"]), ("13", cells["13"])]:
        again = replay(output / f"MMStar_{stem}.manifest.jsonl", index)
        assert base64.b64encode(again.data).decode() == cell
    again = replay(output / f"MMStar_{stem}.manifest.jsonl", "11", part=1)
    assert base64.b64encode(again.data).decode() == ast.literal_eval(cells["11"])[1]


def test_replay_of_a_source_that_has_moved_or_changed(benchmark: Path, configure: Configure, tmp_path: Path) -> None:
    output = build(configure(benchmark)).output
    lines = output / "MMStar_LOW_LEVEL_HIGH.manifest.jsonl"
    moved = benchmark.rename(tmp_path / "moved.tsv")
    with pytest.raises(ValueError, match="no such file"):
        replay(lines, "7")
    assert replay(lines, "7", source=moved).suffix == "jpg"
    write_tsv(moved, ("index", "image"), [("7", picture(9))])
    with pytest.raises(ValueError, match="not the one that the build read"):
        replay(lines, "7", source=moved)
    with pytest.raises(ConfigError, match=r"index=99: .* no row of this index. Its first ones are 7, 1000007, 8, 9, 10, 11, 12, 13"):
        replay(lines, "99", source=moved)
    with pytest.raises(ConfigError, match=r"index=12: the build made no image for this row .* it is empty"):
        replay(lines, "12", source=moved)
    with pytest.raises(ConfigError, match=r"part=2: the cell of index 11 .* holds 2 images, part=0 to part=1"):
        replay(lines, "11", part=2, source=moved)


def test_mmr_like_a_benchmark(configure: Configure, tmp_path: Path) -> None:
    kinds = ("NEG", "POS")
    questions = [{"id": "a/b/1", "image": "a/b/1.png", "question": k, "ground_truth": "A", "question_type": k} for k in kinds]
    (tmp_path / "q.json").write_text(json.dumps(questions))
    (tmp_path / "images" / "a" / "b").mkdir(parents=True)
    (tmp_path / "images" / "a" / "b" / "1.png").write_bytes(base64.b64decode(picture(1)))
    config = configure(Path("mmr"), questions=str(tmp_path / "q.json"), images=str(tmp_path / "images"))
    report = build(config)
    assert [path.name for path in report.files] == [f"MMR_{stem}.tsv" for stem in STEMS]
    (path,) = [path for path in report.files if "HIGH" in path.name]
    assert [(row["index"], row["question"], row["image"] == "0") for row in table(path)] == [("0", "NEG", False), ("1", "POS", True)]
    moved = (tmp_path / "images").rename(tmp_path / "moved")
    again = replay(path.with_name(path.stem + manifest.SUFFIX), "1", source=moved)
    assert base64.b64encode(again.data).decode() == table(path)[0]["image"]


@pytest.mark.parametrize("setting", ["source", "output"])
def test_an_empty_path_is_not_the_current_folder(tmp_path: Path, setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting}= is empty"):
        build(BuildConfig(**{"source": "sample", "output": str(tmp_path), setting: ""}))


def test_the_source_s_own_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the source's own folder"):
        build(BuildConfig(source=str(tmp_path), output=str(tmp_path / "." / "")))
