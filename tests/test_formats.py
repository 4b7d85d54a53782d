"""Other tools' files: golden files written by hand, round trips, plug-ins, and hostile input."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricsim import formats
from fabricsim.catalog import load_topology, load_traffic
from fabricsim.errors import FabricsimError, SpecError
from fabricsim.fabric import to_networkx
from fabricsim.formats import files
from fabricsim.formats.nccl_tests import command
from fabricsim.simulate import simulate
from fabricsim.transfers import Transfers, transfers
from tests.helpers import Command, Ran

GOLDEN = Path(__file__).parent / "golden"


def rows(ran: Ran) -> list[dict[str, Any]]:
    """Give the results of a run of several sizes."""
    data: list[dict[str, Any]] = json.loads(ran.out)
    return data


def equal(one: Transfers, other: Transfers) -> None:
    for name, value in vars(one).items():
        if name not in ("before", "after"):
            np.testing.assert_array_equal(getattr(other, name), value, err_msg=name)
    pairs = [sorted(zip(t.before.tolist(), t.after.tolist(), strict=True)) for t in (one, other)]
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize("suffix", ["json", "graphml"])
@pytest.mark.parametrize("name", ["trn2-nl16", "hgx-h100"])
def test_a_fabric_survives_another_format(
    name: str, suffix: str, tmp_path: Path, fabricsim: Command
) -> None:
    path = str(tmp_path / f"x.{suffix}")
    assert fabricsim("convert", name, path).err == ""
    fabric, back = load_topology(name), load_topology(path)
    for key, value in vars(fabric).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, key), value, err_msg=key)
        elif key not in ("name", "spec"):
            assert getattr(back, key) == value, key
    assert back.spec == {"name": "x", "builder": "edges", "parameters": {"path": path}}


def test_a_list_of_edges_says_what_it_leaves_out(tmp_path: Path, fabricsim: Command) -> None:
    path = str(tmp_path / "x.csv")
    ran = fabricsim("convert", "trn2-nl16", path)
    assert "topology.endpoints" in ran.err
    assert ran.status == 0
    own = fabricsim("run", path, "all-to-all", "--set", "topology.forward=true", "--json", "-").json
    theirs = fabricsim("run", "trn2-nl16", "all-to-all", "--json", "-").json
    assert own["transfer_time_s"] == theirs["transfer_time_s"]


def test_the_topology_zoo_as_published(fabricsim: Command) -> None:
    path = str(GOLDEN / "zoo.graphml")
    error = fabricsim.fails("show", path)
    assert "edge from Aix to Cork: is without bandwidth" in error
    assert "topology.bandwidth" in error
    fabric = load_topology(path, bandwidth="1 Gb/s", forward=True)
    assert [fabric.node_name(node) for node in fabric.endpoints] == ["Aix", "Brno", "Cork"]
    assert sorted(set(fabric.capacity)) == [1.25e8, 1.25e9]
    result = simulate(fabric, load_traffic("permutation", algorithm="shift", size="125 MB"))
    # Brno to Cork and Cork to Aix: the leased line carries one of them each way.
    assert result.transfer_time_s == pytest.approx(1.0, rel=1e-12)


def test_a_file_may_be_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.csv").write_text("src,dst,bandwidth\na,b,1 GB/s\n")
    (tmp_path / "c.toml").write_text(
        'builder = "cluster"\n[parameters]\npods = 2\npod = "pod.csv"\n'
        'nic_bandwidth = "400 Gb/s"\nscale_out = { topology = "star" }\n'
    )
    assert len(load_topology("c.toml").endpoints) == 4
    assert len(load_topology("pod.csv").endpoints) == 2


# Traffic: matrices and lists of transfers.


def test_a_matrix_and_a_list_are_the_same_traffic(tmp_path: Path, fabricsim: Command) -> None:
    entries = np.arange(64.0).reshape(8, 8)
    np.savetxt(tmp_path / "m.csv", entries, delimiter=",")
    np.save(tmp_path / "m.npy", entries.T.copy().T)  # Fortran's order
    np.savez_compressed(tmp_path / "m.npz", entries)
    src, dst = np.nonzero(entries)
    np.savez(tmp_path / "t.npz", src=src, dst=dst, bytes=entries[src, dst])
    lines = [f"{i},{j},{entries[i, j]}" for i, j in zip(src, dst, strict=True)]
    (tmp_path / "t.csv").write_text("src,dst,bytes\n" + "\n".join(lines) + "\n")
    times = []
    for name in ("m.csv", "m.npy", "m.npz", "t.npz", "t.csv"):
        result = fabricsim("run", "star", str(tmp_path / name), "--json", "-").json
        times.append(result["time_s"])
        assert result["traffic"]["parameters"]["file"] == str(tmp_path / name)
    off = entries * ~np.eye(8, dtype=bool)
    most = max(off.sum(axis=0).max(), off.sum(axis=1).max())
    assert times == pytest.approx([most / 50e9] * 5, rel=1e-12)
    fabricsim("convert", str(tmp_path / "m.npy"), str(tmp_path / "back.csv"), "--to", "matrix")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "back.csv", delimiter=","), off)


def test_starts_delays_and_order(tmp_path: Path, fabricsim: Command) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "src, dst, bytes, start, delay, after\n"
        "0, 1, 50e9, 0, 0,\n"  # to 1 s
        "1, 2, 50e9, 0, 0.5, 0\n"  # 1.5 s to 2.5 s
        "3, 2, 25e9, 2, 0,\n"  # shares rank 2's link from 2 s on: both are done at 3 s
        "4, 4, 0, 0, 10, 1;2\n"  # a computation
        "4, 5, 50e9, 0, 0, 3\n"
    )
    result = fabricsim("run", "star", str(path), "--json", "-").json
    assert result["time_s"] == pytest.approx(14, rel=1e-12)
    assert result["transfer_time_s"] == pytest.approx(14, rel=1e-12)
    late = fabricsim(
        "run", "star", str(path), "--set", "topology.link_latency='1 s'", "--json", "-"
    ).json
    # 0 -> 1 arrives at 3 s, 1 -> 2 at 6.5 s alone, the computation ends at 16.5 s.
    assert late["time_s"] == pytest.approx(19.5, rel=1e-12)
    assert late["transfer_time_s"] == pytest.approx(14, rel=1e-12)
    assert "optimal" in fabricsim.fails("run", "star", str(path), "--routing", "optimal")


@st.composite
def traffics(draw: st.DrawFn) -> Transfers:
    count = draw(st.integers(0, 6))
    number = st.floats(0, 1e12)
    rank = st.integers(0, 9)
    pairs = draw(st.sets(st.tuples(rank, rank), max_size=8))
    table = np.array(sorted(p for p in pairs if p[0] < p[1] < count), np.int64).reshape(-1, 2)

    def row(items: st.SearchStrategy[Any]) -> Any:
        return np.array(draw(st.lists(items, min_size=count, max_size=count)), np.float64)

    src, dst = row(rank).astype(int), row(rank).astype(int)
    return transfers(
        int(max(src.max(initial=-1), dst.max(initial=-1))) + 1,
        src,
        dst,
        row(number),
        start=row(number),
        delay=row(number),
        before=table[:, 0],
        after=table[:, 1],
    )


@settings(max_examples=50, deadline=None)
@given(traffics())
def test_transfers_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, traffic: Transfers
) -> None:
    path = tmp_path_factory.mktemp("file") / "t.csv"
    found = formats.find("transfers")
    assert found.write is not None
    path.write_text(str(found.write(traffic, {})))
    equal(traffic, formats.read(path, "transfers", {}))


def test_a_collective_as_transfers(tmp_path: Path, fabricsim: Command) -> None:
    path = str(tmp_path / "t.csv")
    assert "give --on TOPOLOGY" in fabricsim.fails("convert", "all-reduce", path)
    fabricsim("convert", "all-reduce", path, "--on", "trn2-nl16", "--set", "traffic.chunks=2")
    here = fabricsim("run", "trn2-nl16", path, "--json", "-").json
    there = fabricsim("run", "trn2-nl16", "all-reduce", "--set", "traffic.chunks=2", "--json", "-")
    assert here["time_s"] == pytest.approx(there.json["time_s"], rel=1e-12)
    assert "no starts and no order" in fabricsim.fails("convert", path, path, "--to", "matrix")


# nccl-tests.


@pytest.mark.parametrize(
    ("words", "pattern", "sizes", "ranks"),
    [
        ("all_reduce_perf -b 8 -e 64 -f 2", "all-reduce", [8, 16, 32, 64], None),
        ("./build/alltoall_perf -b1K -e3k -i 1K", "all-to-all", [1024, 2048, 3072], None),
        ("mpirun -np 16 reduce_perf -g 1 -t2", "reduce", [32 << 20], 32),
        ("srun --ntasks=4 broadcast_perf --minbytes=1.5K --maxbytes 1.5K", "broadcast", [1536], 4),
        ("all_gather_perf -b 0 -e 8 -f 2", "all-gather", [0], None),
        ("reduce_scatter_perf -b 1 -e 26 -f 3 -n 20 -w 5 -c 0", "reduce-scatter", [1, 3, 9], None),
        ("A=1 mpirun -np 8 /x/all_reduce_perf -b 1G -e 1G > log", "all-reduce", [1 << 30], 8),
    ],
)
def test_command_lines(words: str, pattern: str, sizes: list[int], ranks: int | None) -> None:
    found = command(words)
    assert (found.pattern, found.size_B.tolist(), found.ranks) == (pattern, sizes, ranks)


def test_a_command_is_traffic(tmp_path: Path, fabricsim: Command) -> None:
    words = "all_reduce_perf -b 1M -e 4M -f 2"
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\nset -e\n{words[:19]} \\\n{words[19:]}\n")
    found = rows(fabricsim("run", "hgx-h100", words, "--json", "-"))
    assert rows(fabricsim("run", "hgx-h100", str(tmp_path / "job.sh"), "--json", "-")) == found
    alone = fabricsim("run", "hgx-h100", "all-reduce", "--set", "traffic.size=2MiB", "--json", "-")
    assert [row["size_B"] for row in found] == [1 << 20, 2 << 20, 4 << 20]
    assert found[1]["time_s"] == alone.json["time_s"]
    assert found[1]["measured"] is None
    assert "2 MiB" in fabricsim("run", "hgx-h100", words).out


def test_a_measured_table_beside_a_simulated_one(fabricsim: Command) -> None:
    path = str(GOLDEN / "nccl-all-reduce.txt")
    found = rows(fabricsim("run", "hgx-h100", path, "--json", "-"))
    assert [row["measured"] for row in found] == [
        {"time_s": pytest.approx(t), "busbw_Bps": pytest.approx(b)}
        for t, b in ((60e-6, 30.58e9), (90e-6, 40.78e9), (150e-6, 48.93e9))
    ]
    out = fabricsim("run", "hgx-h100", path).out
    ratio = 90e-6 / found[1]["time_s"]
    assert f"{ratio:.3g}" in out.splitlines()[4]
    error = fabricsim.fails("run", "star", path, "--set", "topology.endpoints=4")
    assert "for 8 ranks, and a group has 4" in error
    assert "runs them all" in fabricsim.fails("compare", "star", "--traffic", path)


def test_a_table_that_does_not_say_its_test(tmp_path: Path, fabricsim: Command) -> None:
    text = (GOLDEN / "nccl-all-reduce.txt").read_text().replace("all_reduce_perf", "something")
    path = tmp_path / "log.txt"
    path.write_text("".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines()))
    assert "traffic.program=" in fabricsim.fails("run", "hgx-h100", str(path))
    setting = ("--set", "traffic.program=alltoall_perf")
    found = rows(fabricsim("run", "hgx-h100", str(path), *setting, "--json", "-"))
    assert found[0]["traffic"]["name"] == "all-to-all"
    assert len(found) == 3


# What is not as it should be: one line, with the place, and nothing executed.

BOMB = """<?xml version="1.0"?>
<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml><graph><node id="&b;"/></graph></graphml>
"""
STOLEN = """<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<graphml><graph><node id="&a;"/></graph></graphml>
"""
DEEP = '{"nodes":' + "[" * 100_000
DEEP_XML = "<graphml>" + "<graph>" * 1000
EDGE = (
    '{{"nodes": [{{"id": 0{}}}, {{"id": 1}}], '
    '"links": [{{"source": 0, "target": 1, "capacity": {}}}]}}'
)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("x.graphml", BOMB, "line 2: refused: EntitiesForbidden"),
        ("x.graphml", STOLEN, "line 1: refused: EntitiesForbidden"),
        ("x.graphml", DEEP_XML, "line 1: more than 64 elements within each other"),
        ("x.graphml", "<graphml><graph>", "not valid GraphML: no element found: line 1"),
        (
            "x.graphml",
            "<graphml><graph><edge/></graph></graphml>",
            "line 1: <edge> has no 'source'",
        ),
        ("x.json", DEEP, "nested too deeply"),
        ("x.json", '{"nodes": 3}', "'nodes' must be a list"),
        ("x.json", '{"nodes": [3]}', "nodes[0]: must be a table, not 3"),
        ("x.json", '{"nodes": [{"id": {}}]}', "nodes[0]: not a node-link graph: 'id' is {}"),
        ("x.json", '{"nodes": [], "graph": 1}', "x.json, graph: must be a table"),
        ("x.json", '{"nodes": [{"id": 1' + "0" * 5000 + "}]}", "not valid JSON"),
        ("x.json", EDGE.format("", '"much"'), "edge from 0 to 1, capacity: must be a number"),
        ("x.json", EDGE.format("", "NaN"), "must be finite, zero or more, not nan"),
        ("x.json", EDGE.format("", "1e999"), "must be finite, zero or more, not inf"),
        ("x.json", EDGE.format("", '1, "cables": 1e9'), "cables: must be a whole number"),
        ("x.json", EDGE.format("", '1, "cables": 99999999999'), "must lie between 1 and"),
        ("x.json", EDGE.format("", '1, "latency": [1]'), "latency: must be a number"),
        ("x.json", EDGE.format(', "rank": "first"', "1"), "node 0, rank: must be a whole"),
        ("x.json", EDGE.format(', "coordinates": [1]', "1"), "other than 0 coordinates"),
        ("x.json", EDGE.format(', "transit": 3', "1"), "transit: must be true or false"),
        ("x.csv", "src,dst,bandwidth\na,b,1 GB/s\nc,d", "line 3: is without bandwidth"),
        ("x.csv", 'src,dst,bandwidth\na,"' + "b" * 200_000, "line 2: not valid CSV"),
        ("x.csv", "src,dst,bandwidth\na,b\x00,\udcff", "byte"),
        ("x.bin", "\x00\x01", "looks like no topology in a format that is known"),
    ],
)
def test_a_bad_topology_is_named(
    file: str, text: str, words: str, tmp_path: Path, fabricsim: Command
) -> None:
    (tmp_path / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    error = fabricsim.fails("show", str(tmp_path / file))
    assert file in error
    assert words in error
    assert len(error) < 500


def npy(array: Any, allow_pickle: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=allow_pickle)
    return out.getvalue()


def npz(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return out.getvalue()


def head(shape: tuple[int, ...]) -> bytes:
    """Write the head of an NPY file, without an array."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return out.getvalue()


TWO = npy(np.arange(2.0))


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("executed"),))


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("m.npy", npy(np.array([[Evil()]]), allow_pickle=True), "cannot be read as numbers"),
        ("m.npy", npy(np.zeros((2, 2)))[:-8], "its head says 2 x 2"),
        ("m.npy", head((10**9, 10**9)), "its head says 1000000000 x 1000000000 of float64"),
        ("m.npy", head((-1, -1)) + bytes(8), "its head says -1 x -1"),
        ("m.npy", head((2, 2)).replace(b"}", b"("), "cannot be read as numbers"),
        ("m.npy", b"\x93NUMPY\x09\x00", "cannot be read as numbers"),
        ("m.npy", npy(np.array([["a"]])), "cannot be read as numbers"),
        ("m.npz", npz(m=npy(np.zeros((2, 2))))[:100], "cannot be read as numbers"),
        ("m.npz", npz(m=b"no array"), "m.npz, m.npy: cannot be read as numbers"),
        ("m.csv", b"0,1\n1\n", "row"),
        ("m.csv", b"0,1e400\n1,0\n", "row 1, column 2 is inf"),
        ("m.csv", b"0" + b",0" * 6000 + b"\n", "has 6,001 ranks, and at most 5,000"),
        ("m.csv", b"0,1\n1,0\n", "is for 2 ranks, and a group has 8"),
        ("t.npz", npz(src=TWO, dst=TWO), "there must be a column 'bytes'"),
        ("t.npz", npz(src=TWO, dst=TWO, bytes=npy(np.zeros(3))), "bytes: must be a row of 2"),
        (
            "t.npz",
            npz(src=TWO, dst=TWO, bytes=npy(np.array([0.0, -1]))),
            "bytes[1]: must be finite, zero or more",
        ),
        (
            "t.npz",
            npz(src=npy(np.array([0.5, 1])), dst=TWO, bytes=TWO),
            "src[0]: must be a rank",
        ),
        ("t.csv", b"src,dst,bytes\n0,1\n", "line 2: has 2 columns, not 3"),
        ("t.csv", b"src,dst,bytes\n0,1,many\n", "line 2, bytes: must be a number, not 'many'"),
        ("t.csv", b"src,dst,bytes\n0,-1,1\n", "line 2, dst: must lie between 0 and"),
        ("t.csv", b"src,dst,bytes\n0,1" + b"0" * 10_000 + b",1\n", "line 2, dst: must be a whole"),
        ("t.csv", b"src,dst,bytes\n0,1000000000,1\n", "is for 1,000,000,001 ranks"),
        ("t.csv", b"src,dst,bytes,affter\n", "unknown column 'affter': did you mean 'after'"),
        ("t.csv", b"src,dst,bytes,after\n0,1,1,5\n", "waits for number 5 of 1"),
        ("t.csv", b"src,dst,bytes,after\n0,1,1,1\n1,2,1,0\n", "wait for themselves"),
        ("n.txt", b"all_reduce_perf -b 8 -e 1G -q 3\n", "unknown flag of nccl-tests '-q'"),
        ("n.txt", b"all_reduce_perf -b 8 -e\n", "-e is without its value"),
        ("n.txt", b"all_reduce_perf -b 8 -e lots\n", "maxbytes: must be a size such as"),
        ("n.txt", b"all_reduce_perf -b 1 -e 1G -i 1\n", "sizes, and at most 10,000"),
        ("n.txt", b"all_reduce_perf -b 1 -e 1G -i 0\n", "stepbytes: must be above zero"),
        ("n.txt", b"all_reduce_perf -b 2G\n", "minbytes 2147483648 is above maxbytes"),
        ("n.txt", b"all_reduce_perf -b 1 -e 2 -r 3\n", "only rank 0 is a root here"),
        ("n.txt", b"all_reduce_perf 'x\n", "No closing quotation"),
        ("n.txt", b"x -np 9999999999 all_reduce_perf -b 1 -e 2\n", "must lie between 1 and"),
        ("n.txt", b"hypercube_perf -b 8\n", "unknown program of nccl-tests 'hypercube_perf'"),
        ("n.txt", b"all_reduce_perf\nalltoall_perf\n", "holds 2 commands of nccl-tests"),
        ("x.bin", b"\x00\x01", "looks like no traffic in a format that is known"),
    ],
)
def test_bad_traffic_is_named(
    file: str,
    content: bytes,
    words: str,
    tmp_path: Path,
    fabricsim: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).write_bytes(content)
    error = fabricsim.fails("run", "star", file)
    assert words in error
    assert len(error) < 600
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("cut", [0.2, 0.6, 0.9])
def test_a_truncated_table_is_named(cut: float, tmp_path: Path, fabricsim: Command) -> None:
    text = (GOLDEN / "nccl-all-reduce.txt").read_text()
    first = text.index("     1048576")
    path = tmp_path / "t.txt"
    path.write_text(text[: first + int(cut * 60)])
    assert "t.txt, line 18" in fabricsim.fails("run", "hgx-h100", str(path))
    path.write_text(text[:first])
    assert "has no rows" in fabricsim.fails("run", "hgx-h100", str(path))


def test_what_is_too_large_is_not_read(
    tmp_path: Path, fabricsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x.csv", "x.json", "x.graphml", "x.npy", "x.txt"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(files.MOST_B + 1)  # a hole: no disk is needed
    for name in ("x.csv", "x.json", "x.graphml"):
        assert "536,870,913 bytes" in fabricsim.fails("show", str(tmp_path / name))
    assert "536,870,913 bytes" in fabricsim.fails(
        "run", "star", str(tmp_path / "x.npy"), "--set", "traffic.format=matrix"
    )
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in range(3):
            archive.writestr(f"{part}.npy", bytes(files.MOST_B // 8))
    monkeypatch.setattr("fabricsim.formats.arrays.MOST_B", files.MOST_B // 4)
    (tmp_path / "m.npz").write_bytes(bomb.getvalue())
    assert "unpacks to" in fabricsim.fails("run", "star", str(tmp_path / "m.npz"))


# The registry.

PLUGIN = """
from fabricsim.formats import Format

def read(path, options):
    import networkx as nx
    graph = nx.Graph()
    for line in path.read_text().splitlines()[1:]:
        graph.add_edge(*line.split(), bandwidth="1 GB/s")
    return graph

FORMAT = Format("Pairs", "topology", (".pairs",), lambda head: head.startswith(b"PAIRS"), read)
NO_FORMAT = 3
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that brings a format."""
    (tmp_path / "pairs_format.py").write_text(PLUGIN)
    info = tmp_path / "pairs_format-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pairs-format\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fabricsim.formats]\npairs = pairs_format:FORMAT\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plugin")
def test_formats_of_other_packages(tmp_path: Path, fabricsim: Command) -> None:
    assert formats.names()[-1] == "pairs"
    (tmp_path / "x.pairs").write_text("PAIRS\na b\nb c\n")
    assert fabricsim("show", str(tmp_path / "x.pairs"), "--json", "-").json["endpoints"] == 3
    error = fabricsim.fails("convert", "trn2-nl16", "x", "--to", "pairs")
    assert "unknown format of topology that is written 'pairs'" in error


def test_no_such_format(fabricsim: Command, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="unknown format 'graphm': did you mean 'graphml'"):
        formats.find("graphm")
    assert "its ending tells no format" in fabricsim.fails("convert", "star", "x.what")
    assert "unknown file, topology or traffic 'stra': did" in fabricsim.fails(
        "convert", "stra", "x"
    )
    path = tmp_path / "x.csv"
    path.write_text("src,dst,bandwidth\na,b,1 GB/s\n")
    error = fabricsim.fails("show", str(path), "--set", "topology.options.gigabyte=1")
    assert "unknown option of edge-list 'gigabyte'" in error
    error = fabricsim.fails("show", str(path), "--set", "topology.format=matrix")
    assert "matrix is no format of topology" in error


def test_every_format_has_a_description(fabricsim: Command) -> None:
    out = fabricsim("list", "formats").out
    for name in formats.names():
        assert f"{name} " in out
        assert formats.find(name).description in out


def test_an_extra_that_is_not_there_is_named() -> None:
    with pytest.raises(FabricsimError, match=r"pip install 'fabricsim\[formats\]'"):
        files.extra("no_such_module", "PyYAML", "formats")


def test_a_graph_keeps_what_json_can() -> None:
    graph = to_networkx(load_topology("star"))
    found = formats.find("node-link")
    assert found.write is not None
    assert json.loads(found.write(graph, {}))["graph"]["name"] == "star"
