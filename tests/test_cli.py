"""The command line: what it prints, and how it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fabricsim import __version__
from tests.helpers import Command

RUN_KEYS = {
    "time_s",
    "transfer_time_s",
    "algbw_Bps",
    "busbw_Bps",
    "endpoints",
    "ranks",
    "flows",
    "bottleneck",
    "link_kinds",
    "bound_s",
    "bound",
    "efficiency",
    "steps",
    "topology",
    "traffic",
    "routing",
    "seed",
    "version",
}
SHOW_KEYS = {
    "name",
    "endpoints",
    "switches",
    "switch_links",
    "endpoint_links",
    "injection_Bps",
    "bisection_Bps",
    "diameter",
}


def test_run_for_people(fabricsim: Command) -> None:
    out = fabricsim("run", "trn2-nl64", "all-to-all").out
    assert out.startswith("trn2-nl64: all-to-all of 64 MiB among 64 ranks, spray\n")
    assert "524 us of transfer" in out
    assert "Bottleneck: z links, the busiest 100% of the time, all of them alike." in out
    assert "What would help: faster z links, up to 2x: then x links limit." in out


def test_run_says_when_latency_limits(fabricsim: Command) -> None:
    out = fabricsim("run", "trn2-nl64", "all-reduce", "--set", "traffic.size=1KiB").out
    assert "Bottleneck: latency, " in out
    assert "fewer steps" in out


def test_run_says_when_routing_limits(fabricsim: Command) -> None:
    out = fabricsim("run", "trn2-nl64", "all-to-all", "--routing", "ecmp").out
    assert "the load is uneven" in out
    assert "another routing, algorithm (--explain) or placement, up to 1.4" in out


def test_run_as_json(fabricsim: Command) -> None:
    ran = fabricsim("run", "trn2-nl64", "all-to-all", "--json", "-")
    assert set(ran.json) >= RUN_KEYS
    assert ran.json["bottleneck"] == {"link_kind": "z", "utilisation": pytest.approx(1)}
    assert ran.json["version"] == __version__
    assert ran.json["flows"] == 64 * 63
    kinds = {kind["kind"]: kind for kind in ran.json["link_kinds"]}
    assert set(kinds) == {"x", "y", "z"}
    assert kinds["z"]["links"] == 128
    assert kinds["z"]["capacity_Bps"] == 64e9
    assert kinds["x"]["mean_utilisation"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "args",
    [
        ["trn2-nl16", "all-to-all"],
        ["trn2-nl16", "all-to-all", "--routing", "ecmp"],
        ["trn3-nl32x2-gen1", "all-to-all", "--routing", "single"],
        ["trn2-nl16", "permutation", "--routing", "optimal"],
        ["star", "all-reduce"],
    ],
    ids=" ".join,
)
def test_run_certified(args: list[str], fabricsim: Command) -> None:
    out = fabricsim("run", *args, "--certify").out
    assert "the largest relative violation of max-min fairness" in out
    assert (
        0 <= fabricsim("run", *args, "--certify", "--json", "-").json["max_min_violation"] < 1e-11
    )
    assert fabricsim("run", *args, "--json", "-").json["max_min_violation"] is None


def test_run_without_arguments_is_the_example(fabricsim: Command) -> None:
    assert fabricsim("run").out == fabricsim("run", "trn3-nl72x2-gen1", "all-to-all").out


def test_same_inputs_same_bytes(fabricsim: Command) -> None:
    args = ("run", "trn2-nl16", "permutation", "--routing", "ecmp", "--seed", "7", "--json", "-")
    assert fabricsim(*args).out == fabricsim(*args).out
    assert fabricsim(*args).out != fabricsim(*args[:-3], "8", "--json", "-").out


def test_json_file_is_written_whole(fabricsim: Command, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    ran = fabricsim("run", "star", "incast", "--json", str(target))
    assert "star: incast" in ran.out
    assert set(json.loads(target.read_text())) >= RUN_KEYS
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    error = fabricsim.fails("run", "star", "incast", "--json", str(tmp_path / "no" / "r.json"))
    assert "cannot be written" in error


def test_a_saved_result_can_be_run_again(fabricsim: Command, tmp_path: Path) -> None:
    args = ("--set", "traffic.size=3MB", "--set", "topology.dims=[2,3]", "--json", "-")
    first = fabricsim("run", "trn2-nl16", "all-to-all", *args).json
    names = []
    for table, key in (("topology", "builder"), ("traffic", "pattern")):
        echo = first[table]
        lines = [f"{key} = {json.dumps(echo[key])}", "[parameters]"]
        lines += [f"{k} = {json.dumps(v)}" for k, v in echo["parameters"].items()]
        names.append(str(tmp_path / f"{echo['name']}.toml"))
        Path(names[-1]).write_text("\n".join(lines))
    assert fabricsim("run", *names, "--json", "-").json == first


@pytest.mark.parametrize("name", ["trn2-nl64", "trn3-nl72x2-gen1", "gb200-nvl72", "fat-tree-51.2t"])
def test_show(name: str, fabricsim: Command) -> None:
    data = fabricsim("show", name, "--json", "-").json
    assert set(data) >= SHOW_KEYS
    assert data["name"] == name
    out = fabricsim("show", name).out
    assert f"{data['endpoints']:,}" in out
    assert "hardware" not in out


def test_show_counts_33_million_endpoints_at_once(fabricsim: Command) -> None:
    data = fabricsim("show", "fat-tree-51.2t", "--set", "topology.layers=3", "--json", "-").json
    assert data["endpoints"] == 33_554_432
    assert data["switches"] == 327_680


def test_show_says_where_figures_come_from(fabricsim: Command) -> None:
    out = fabricsim("show", "trn3-nl72x2-gen1", "--set", "topology.racks=3").out
    assert "assumption: scale-up switch latency is not published" in out
    assert "set by the user" in out


def test_compare(fabricsim: Command) -> None:
    args = ("compare", "trn2-nl64", "gb200-nvl72", "--traffic", "all-to-all")
    lines = fabricsim(*args).out.splitlines()
    assert [line.split()[0] for line in lines] == ["topology", "trn2-nl64", "gb200-nvl72"]
    rows = json.loads(fabricsim(*args, "--json", "-").out)
    assert rows == [fabricsim("run", n, "all-to-all", "--json", "-").json for n in args[1:3]]


def test_list(fabricsim: Command) -> None:
    out = fabricsim("list").out
    for word in ("trn3-nl72x2-gen3", "all-reduce", "dimension-order", "ring", "topologies:"):
        assert word in out
    assert "trn2-nl64" not in fabricsim("list", "routing").out
    assert fabricsim("list", "traffic").out.startswith("  all-gather")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["run", "trn2-nl46", "all-to-all"],
            "unknown topology 'trn2-nl46': did you mean 'trn2-nl64'",
        ),
        (["run", "trn2-nl64", "all2all"], "unknown traffic 'all2all': did you mean 'all-to-all'"),
        (["run", "trn2-nl64", "all-to-all", "--routing", "ecpm"], "did you mean 'ecmp'"),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "topology.bandwidth=128"],
            "topology.bandwidth[0]: a bandwidth needs a unit, such as '128 GB/s'",
        ),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "topology.bandwidth=128 GB"],
            "topology.bandwidth[0]: 'GB' is not a unit of bandwidth",
        ),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "topology.bandwidth=-1 GB/s"],
            "topology.bandwidth[0]: input should be greater than 0",
        ),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "topology.bandwidth=0 GB/s"],
            "topology.bandwidth[0]: input should be greater than 0",
        ),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "topology.bandwith=1 GB/s"],
            "torus has no parameter 'bandwith': did you mean 'bandwidth'?",
        ),
        (
            ["run", "gb200-nvl72", "all-to-all", "--set", "topology.tray.bandwith=1 GB/s"],
            "topology.tray.bandwith",
        ),
        (["run", "trn2-nl64", "all-to-all", "--set", "topology.dims=[4,0]"], "topology.dims[1]"),
        (["run", "trn2-nl64", "all-to-all", "--set", "topology.dims=[4,1.5]"], "topology.dims[1]"),
        (["run", "trn2-nl64", "all-to-all", "--set", "topology.dims=x"], "topology.dims"),
        (["run", "trn2-nl64", "all-to-all", "--set", "dims=[4]"], "write topology.PARAM=VALUE"),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "topology.dims"],
            "write topology.PARAM=VALUE",
        ),
        (["show", "trn2-nl64", "--set", "traffic.size=1MB"], "write topology.PARAM=VALUE"),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "traffic.group_size=48"],
            "group_size = 48 does not divide the 64 ranks; the nearest that would: 32 or 64",
        ),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "traffic.group_size=100"],
            "the nearest that would: 64",
        ),
        (
            ["run", "trn2-nl64", "all-to-all", "--set", "traffic.algorithm=magic"],
            "traffic.algorithm",
        ),
        (["run", "gb200-nvl72", "all-to-all", "--routing", "dimension-order"], "needs a torus"),
        (["run", "fat-tree-51.2t", "all-to-all"], "transfers in one step"),
        (["run", "fat-tree-51.2t", "incast", "--set", "topology.layers=3"], "directed links"),
        (["run", "no/such/file.toml", "all-to-all"], "does not exist"),
        (["run", "tests", "all-to-all"], "unknown topology 'tests'"),
        (["run", "./tests", "all-to-all"], "is no file"),
        (["run", "trn2-nl64", "all-to-all", "--seed", "-1"], "--seed"),
        (["run", "trn2-nl64", "all-to-all", "surplus"], "surplus"),
        (["run", "trn2-nl64", "all-to-all", "--sede", "1"], "--sede"),
        (["walk"], "walk"),
        (["list", "colours"], "colours"),
    ],
)
def test_refuses_in_one_line(args: list[str], words: str, fabricsim: Command) -> None:
    assert words in fabricsim.fails(*args)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("builder = ", "not valid TOML"),
        ("builder = 'torus'\n[parameters]\ndims == [4]", "at line 3"),
        ("builder = 'torus'\nx = 1", "x: this file has no parameter 'x'"),
        ("builder = 'tours'", "did you mean 'torus'"),
        ("[parameters]\ndims = [4]", "builder: is missing"),
        ("builder = 'torus'", "parameters.dims: is missing, and torus needs it (and 1 more)"),
        (
            "builder = 'torus'\n[parameters]\ndims = [4]\nbandwidth = 5",
            "parameters.bandwidth[0]: a bandwidth needs a unit",
        ),
        (
            "builder = 'torus'\n[parameters]\ndims = [4]\nbandwidth = '5 GB/s'\n"
            "[source]\ndim = 'x'",
            "source.dim: there is no parameter of that name",
        ),
    ],
)
def test_a_bad_file_is_named(text: str, words: str, fabricsim: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    error = fabricsim.fails("run", str(path), "all-to-all")
    assert words in error
    assert "mine.toml" in error or "did you mean" in error


def test_a_file_that_is_no_text_is_named(fabricsim: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"builder = '\xff'")
    assert "not UTF-8" in fabricsim.fails("run", str(path), "all-to-all")


def test_an_unreachable_pair_is_refused(fabricsim: Command) -> None:
    error = fabricsim.fails(
        "run", "trn3-nl72x2-gen1", "all-to-all", "--set", "topology.planes=2",
        "--set", "topology.tray=false",
    )  # fmt: skip
    assert "topology.tray" in error


def modules_after(*args: str) -> set[str]:
    code = (
        "import sys\nsys.argv = ['fabricsim', *sys.argv[1:]]\nfrom fabricsim import cli\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_help_imports_nothing_heavy() -> None:
    loaded = modules_after("--help")
    assert not loaded & {"numpy", "scipy", "networkx", "matplotlib", "pydantic"}


def test_run_imports_no_more_than_it_needs() -> None:
    loaded = modules_after("run", "trn2-nl16", "all-to-all")
    assert not loaded & {"networkx", "matplotlib", "pint", "scipy.optimize", "scipy.stats"}
