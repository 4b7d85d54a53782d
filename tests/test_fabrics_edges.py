"""Fabrics of one's own: files of links, graphs, and builders of other packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from fabricsim import builders
from fabricsim.builders import Part
from fabricsim.catalog import load_topology, load_traffic, topology
from fabricsim.errors import FabricError, FabricsimError, SpecError
from fabricsim.fabric import Counts, Fabric, to_networkx
from fabricsim.simulate import simulate
from tests.helpers import Command, build
from tests.test_builders import anything

# Two GPUs of a server joined by NVLink and each to a leaf; a third GPU on the other leaf.
LINKS = """src, dst, bandwidth, latency, kind
gpu0, gpu1, 450 GB/s, 10 ns, nvlink
gpu0, leaf0, 400 Gb/s, 50 ns, host
gpu1, leaf0, 400 Gb/s, 50 ns, host

gpu2, leaf1, 400 Gb/s, 50 ns, host
leaf0, leaf1, 400 Gb/s, 150 ns, trunk
leaf0, leaf1, 400 Gb/s, 150 ns, trunk
"""


def spec(folder: Path, file: str, text: str, **parameters: Any) -> str:
    """Write a file of links, and a topology beside it that names it."""
    (folder / file).write_text(text, encoding="utf-8")
    given = {"path": file, **parameters}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    path = folder / "own.toml"
    path.write_text('builder = "edges"\n[parameters]\n' + "\n".join(lines), encoding="utf-8")
    return str(path)


def test_csv_of_links(tmp_path: Path, fabricsim: Command) -> None:
    path = spec(tmp_path, "links.csv", LINKS, endpoints="gpu*", switch_latency="100 ns")
    fabric = load_topology(path)
    assert [fabric.node_name(e) for e in fabric.endpoints] == ["gpu0", "gpu1", "gpu2"]
    assert fabric.link_kinds == ("nvlink", "host", "trunk")
    assert fabric.links == 12
    assert sorted(set(fabric.capacity)) == [50e9, 450e9]
    assert not fabric.transit[fabric.endpoints].any()
    assert set(fabric.transit_latency) == {0.0, 1e-7}
    assert fabric.latency[:2].tolist() == [1e-8, 1e-8]
    shown = fabricsim("show", path, "--json", "-").json
    assert (shown["endpoints"], shown["switches"], shown["diameter"]) == (3, 2, 3)
    assert (shown["endpoint_links"], shown["switch_links"], shown["degree"]) == (4, 2, 1)
    assert shown["injection_Bps"] == 50e9
    assert shown["bisection_Bps"] is None
    assert "bisection" not in fabricsim("show", path).out
    # gpu2 takes 2/3 of the two others' buffers by its one link.
    result = simulate(fabric, load_traffic("all-to-all", size="300 MB"))
    assert result.transfer_time_s == pytest.approx(200e6 / 50e9, rel=1e-12)


def test_duplex_is_a_flag_of_the_file_or_of_a_line(tmp_path: Path) -> None:
    ring = "src,dst,bandwidth\n" + "".join(f"{i},{(i + 1) % 4},1 GB/s\n" for i in range(4))
    fabric = load_topology(spec(tmp_path, "ring.csv", ring, duplex=False, forward=True))
    assert (fabric.link_src.tolist(), fabric.link_dst.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    counts = count(spec(tmp_path, "ring.csv", ring, duplex=False, forward=True))
    assert (counts.endpoint_links, counts.diameter, counts.degree) == (4, 3, 1)
    mixed = "src,dst,bandwidth,duplex\na,b,1 GB/s,no\nb,c,1 GB/s,yes\nc,a,1 GB/s,\n"
    for duplex, links in ((True, 5), (False, 4)):
        assert load_topology(spec(tmp_path, "m.csv", mixed, duplex=duplex)).links == links


def count(path: str) -> Counts:
    found = topology(path)
    return found.builder.count(found.parameters)


def test_cables_are_paired_by_their_ends(tmp_path: Path) -> None:
    text = "src,dst,bandwidth,duplex\na,b,1 GB/s,no\nb,a,2 GB/s,no\na,b,1 GB/s,no\nb,c,1 GB/s,\n"
    assert count(spec(tmp_path, "x.csv", text)).endpoint_links == 3


def test_a_path_starts_at_its_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricsim: Command
) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    spec(folder, "links.csv", LINKS, endpoints=["gpu0", "gpu[12]"])
    monkeypatch.chdir(tmp_path)
    ran = fabricsim("show", "deep/own.toml", "--json", "-")
    assert ran.json["endpoints"] == 3
    # And so it does where the fabric is a part of another.
    (tmp_path / "c.toml").write_text(
        'builder = "cluster"\n[parameters]\npods = 2\npod = "deep/own.toml"\n'
        'nic_bandwidth = "400 Gb/s"\nscale_out = { topology = "star" }\n'
    )
    cluster = load_topology("c.toml")
    assert [cluster.node_name(e) for e in cluster.endpoints][::3] == ["pod 0 gpu0", "pod 1 gpu0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("src,dst,bandwith\n", "x.csv: unknown column 'bandwith': did you mean 'bandwidth'?"),
        ("src,dst\n", "x.csv: the first line must name a column 'bandwidth'"),
        ("", "x.csv: the first line must name a column 'src'"),
        ("src,dst,bandwidth\na,b,100\n", "x.csv, line 2, bandwidth: '100' has no unit"),
        ("src,dst,bandwidth\n\na,b,\n", "x.csv, line 3: is without bandwidth: give 'bandwidth'"),
        ("src,dst,bandwidth\na,,1 GB/s\n", "x.csv, line 2, dst: is missing"),
        ("src,dst,bandwidth\na,b,1 GB/s,9\n", "x.csv, line 2: has more than 3 columns"),
        ("src,dst,bandwidth\na,b,0 GB/s\n", "x.csv: link from a to b: capacity 0, must be"),
        ("src,dst,bandwidth\na,a,1 GB/s\n", "x.csv: link from a to a: joins a node to itself"),
        ("src,dst,bandwidth,latency\na,b,1 GB/s,1 GB\n", "line 2, latency: 'GB' is not a unit"),
        ("src,dst,bandwidth,duplex\na,b,1 GB/s,si\n", "duplex: must be true or false, not 'si'"),
    ],
)
def test_a_bad_line_is_named(text: str, words: str, tmp_path: Path, fabricsim: Command) -> None:
    assert words in fabricsim.fails("show", spec(tmp_path, "x.csv", text))


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("x.txt", "", "x.txt: looks like no topology in a format that is known: give its format"),
        ("x.json", "{", "x.json: not valid JSON"),
        ("x.json", "[]", "x.json: not a node-link graph: it has no 'nodes'"),
        ("x.json", '{"nodes": [{"id": 1}], "links": [{"source": 1}]}', "not a node-link graph"),
        ("x.graphml", "<graphml>", "x.graphml: not valid GraphML"),
        (
            "x.json",
            '{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]}',
            "edge from 1 to 2: is without bandwidth: give 'bandwidth', such as '100 Gb/s' or",
        ),
        (
            "x.json",
            '{"nodes": [{"id": 1}, {"id": 2}], "edges": '
            '[{"source": 1, "target": 2, "bandwidth": "1 GB/s", "capacity": 1}]}',
            "has a bandwidth and a capacity",
        ),
    ],
)
def test_a_bad_graph_is_named(
    file: str, text: str, words: str, tmp_path: Path, fabricsim: Command
) -> None:
    assert words in fabricsim.fails("show", spec(tmp_path, file, text))


def test_a_missing_file_and_an_unknown_endpoint(tmp_path: Path, fabricsim: Command) -> None:
    path = spec(tmp_path, "x.csv", LINKS, endpoints=["gpu*", "gpuX"])
    assert "'gpuX': did you mean 'gpu" in fabricsim.fails("show", path)
    (tmp_path / "x.csv").unlink()
    assert "x.csv: cannot be read: No such file" in fabricsim.fails("show", path)
    assert "path: a path must be text" in fabricsim.fails("show", path, "--set", "topology.path=3")


def nvl4() -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph(name="nvl4")
    graph.add_nodes_from([f"gpu{i}" for i in range(4)], kind="endpoint")
    graph.add_nodes_from(["s", "t"], kind="switch")
    for i in range(4):
        graph.add_edge(f"gpu{i}", "s", bandwidth="100 GB/s", latency="1 us")
        graph.add_edge(f"gpu{i}", "t", capacity=50e9, latency=2e-6)
    return graph


@pytest.mark.parametrize("key", ["links", "edges"])
def test_node_link_json(key: str, tmp_path: Path) -> None:
    text = json.dumps(nx.node_link_data(nvl4(), edges=key))
    check_nvl4(load_topology(spec(tmp_path, "g.json", text)))


def test_graphml(tmp_path: Path) -> None:
    text = "\n".join(nx.generate_graphml(nvl4()))
    check_nvl4(load_topology(spec(tmp_path, "g.graphml", text)))


def check_nvl4(fabric: Fabric) -> None:
    assert len(fabric.endpoints) == 4
    assert fabric.links == 16
    assert sorted(set(zip(fabric.capacity, fabric.latency, strict=True))) == [
        (50e9, 2e-6),
        (100e9, 1e-6),
    ]
    result = simulate(fabric, load_traffic("permutation", size="150 GB", algorithm="shift"))
    assert result.transfer_time_s == pytest.approx(1, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(made=anything)
def test_every_bit_survives_a_file(
    made: tuple[Any, Fabric, Counts], tmp_path_factory: pytest.TempPathFactory
) -> None:
    fabric, counts = made[1:]
    folder = tmp_path_factory.mktemp("file")
    text = json.dumps(nx.node_link_data(to_networkx(fabric), edges="edges"))
    path = folder / "fabric.json"
    path.write_text(text)
    back, again = build("edges", path=str(path))
    for name, value in vars(fabric).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)
        else:
            assert getattr(back, name) == value, name
    for name in ("endpoints", "switches", "switch_links", "endpoint_links", "diameter", "degree"):
        assert getattr(again, name) == getattr(counts, name), name
    assert again.injection_Bps == pytest.approx(counts.injection_Bps)


def test_pairs_without_a_path_are_told(tmp_path: Path) -> None:
    text = "src,dst,bandwidth\na,s,1 GB/s\nb,s,1 GB/s\nc,t,1 GB/s\n"
    counts = count(spec(tmp_path, "x.csv", text, endpoints=["a", "b", "c"]))
    assert counts.notes == ("4 of 6 pairs have no path",)
    assert counts.diameter == 2


PLUGIN = """
from fabricsim.builders import Builder
from fabricsim.builders.star import Star, build, count

class Hub(Star):
    nickname: str = "hub"

BUILDER = Builder(Hub, build, count)
NO_BUILDER = 3
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that brings two builders, one of which is none."""
    (tmp_path / "hub_fabrics.py").write_text(PLUGIN)
    info = tmp_path / "hub_fabrics-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hub-fabrics\nVersion: 1.0\n")
    points = "[fabricsim.builders]\nhub = hub_fabrics:BUILDER\nbad = hub_fabrics:NO_BUILDER\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plugin")
def test_builders_of_other_packages(tmp_path: Path, fabricsim: Command) -> None:
    assert {"hub", "bad", "torus"} <= set(builders.names())
    own = tmp_path / "own.toml"
    own.write_text(
        'builder = "hub"\n[parameters]\nendpoints = 5\nbandwidth = "1 GB/s"\nnickname = "h"\n'
    )
    assert len(load_topology(str(own)).endpoints) == 5
    assert fabricsim("show", str(own), "--json", "-").json["switches"] == 1
    fabric, _ = build(
        "cluster",
        pods=2,
        pod=Part(builders.find("hub"), topology(str(own)).parameters),
        nic_bandwidth="1 GB/s",
        scale_out=topology_part("star", endpoints=10, bandwidth="1 GB/s"),
    )
    assert len(fabric.endpoints) == 10
    with pytest.raises(
        FabricsimError, match="entry point of builder 'bad' is no fabricsim Builder"
    ):
        builders.find("bad")
    with pytest.raises(SpecError, match="unknown builder 'hubb': did you mean 'hub'"):
        builders.find("hubb")


def topology_part(name: str, **parameters: Any) -> Part:
    found = topology(name, **parameters)
    return Part(found.builder, found.parameters)


def test_a_bad_link_raises_the_error_of_fabrics(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"x\.csv: link from a to a"):
        load_topology(spec(tmp_path, "x.csv", "src,dst,bandwidth\na,a,1 GB/s\n"))
