"""The command line: parses, calls, prints.

No logic lives here, and nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabricsim.errors import FabricsimError, SpecError
from fabricsim.version import __version__

if TYPE_CHECKING:
    from fabricsim.fabric import Counts, Fabric
    from fabricsim.formats.nccl_tests import Sizes
    from fabricsim.specs import Topology

EXAMPLE = ("trn3-nl72x2-gen1", "all-to-all")
"""What `fabricsim run` runs when it is told nothing: the README's example."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="fabricsim %(version)s")
def cli() -> None:
    """Simulate collective traffic on the networks of AI clusters.

    TOPOLOGY and TRAFFIC are a name of the catalogue (see `fabricsim list`), a TOML file, or a file
    in the format of another tool (see `fabricsim list formats`).
    """


_settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="TABLE.PARAM=VALUE",
    help="Put a parameter in place, such as topology.dims=[4,4,16] or traffic.size='1 GiB'.",
)
_routing = click.option(
    "--routing", metavar="NAME", help="How flows find their way; default spray."
)
_seed = click.option("--seed", type=click.IntRange(min=0), default=0, help="For what is drawn.")
_json = click.option(
    "--json", "json_to", metavar="FILE|-", help="Write JSON; '-' is standard output."
)


@cli.command()
@click.argument("topology", default=EXAMPLE[0])
@click.argument("traffic", default=EXAMPLE[1])
@_settings
@_routing
@_seed
@_json
@click.option("--explain", is_flag=True, help="Try every algorithm, and show them side by side.")
@click.option("--certify", is_flag=True, help="Check all rates for max-min fairness.")
def run(
    topology: str,
    traffic: str,
    settings: tuple[str, ...],
    routing: str | None,
    seed: int,
    json_to: str | None,
    explain: bool,
    certify: bool,
) -> None:
    """Run TRAFFIC on TOPOLOGY: how long it takes, what limits it, how far from the best it is."""
    from fabricsim.catalog import load_topology, load_traffic
    from fabricsim.result import alternatives_table
    from fabricsim.simulate import alternatives, simulate
    from fabricsim.sizes import sizes

    tables = _parse_settings(settings)
    fabric = load_topology(topology, **tables["topology"])
    if asked := sizes(traffic, tables["traffic"]):
        _run_sizes(fabric, *asked, routing, seed, json_to)
        return
    load = load_traffic(traffic, **tables["traffic"])
    result = simulate(fabric, load, routing, seed, certify=certify)
    tried = alternatives(fabric, load, routing, seed) if explain else ()
    if json_to:
        _write(json_to, result.to_json())
    if json_to != "-":
        click.echo(result.to_table(), nl=False)
        if explain:
            click.echo("\n" + alternatives_table(tried), nl=False)


def _run_sizes(
    fabric: Fabric,
    asked: Sizes,
    parameters: dict[str, Any],
    routing: str | None,
    seed: int,
    json_to: str | None,
) -> None:
    from fabricsim.sizes import run_sizes, to_rows, to_table

    runs = run_sizes(fabric, asked, parameters, routing, seed)
    if json_to:
        _write(json_to, json.dumps(to_rows(runs), indent=2, ensure_ascii=False) + "\n")
    if json_to != "-":
        click.echo(to_table(runs), nl=False)


@cli.command()
@click.argument("given", metavar="IN")
@click.argument("out", metavar="OUT")
@click.option("--to", metavar="FORMAT", help="Format of OUT; by default its ending tells.")
@click.option("--on", "topology", metavar="TOPOLOGY", help="Where traffic of the catalogue runs.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="Of OUT's format.")
@_settings
@_seed
def convert(
    given: str,
    out: str,
    to: str | None,
    topology: str | None,
    options: tuple[str, ...],
    settings: tuple[str, ...],
    seed: int,
) -> None:
    """Write IN, a topology or traffic, as OUT, in the format of another tool; '-' to print it."""
    from fabricsim.catalog import load_topology
    from fabricsim.convert import convert

    tables = _parse_settings(settings)
    on = load_topology(topology, **tables["topology"]) if topology else None
    pairs = [option.partition("=") for option in options]
    content, left_out = convert(
        given,
        out,
        to=to,
        parameters=tables["traffic"] if topology else tables["topology"] | tables["traffic"],
        options={name: _parse_value(value) for name, _, value in pairs},
        on=on,
        seed=seed,
    )
    _write(out, content)
    if left_out:
        click.echo(f"fabricsim: note: {left_out}", err=True)


@cli.command()
@click.argument("topologies", metavar="TOPOLOGY...", nargs=-1, required=True)
@click.option("--traffic", default=EXAMPLE[1], help=f"What runs on each; default {EXAMPLE[1]}.")
@_settings
@_routing
@_seed
@_json
def compare(
    topologies: tuple[str, ...],
    traffic: str,
    settings: tuple[str, ...],
    routing: str | None,
    seed: int,
    json_to: str | None,
) -> None:
    """Run the same traffic on each TOPOLOGY, and set the results side by side."""
    from fabricsim.catalog import load_topology, load_traffic
    from fabricsim.result import comparison_table
    from fabricsim.simulate import simulate

    tables = _parse_settings(settings)
    load = load_traffic(traffic, **tables["traffic"])
    results = [
        simulate(load_topology(name, **tables["topology"]), load, routing, seed)
        for name in topologies
    ]
    if json_to:
        rows = [result.to_dict() for result in results]
        _write(json_to, json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    if json_to != "-":
        click.echo(comparison_table(results), nl=False)


@cli.command(name="list")
@click.argument(
    "what",
    type=click.Choice(["topologies", "traffic", "routing", "algorithms", "formats"]),
    required=False,
)
def list_(what: str | None) -> None:
    """List what there is to choose from."""
    from fabricsim import catalog, formats, patterns, routing

    def entries(kind: catalog.Kind) -> list[tuple[str, str]]:
        load = catalog.topology if kind == "topologies" else catalog.load_traffic
        return [(name, load(name).description) for name in catalog.names(kind)]

    found = {
        "topologies": lambda: entries("topologies"),
        "traffic": lambda: entries("traffic"),
        "routing": lambda: [(n, _first_line(routing.find(n).route)) for n in routing.names()],
        "algorithms": lambda: [
            (f"{pattern} {name}", _first_line(algorithm))
            for pattern in patterns.names()
            for name, algorithm in patterns.find(pattern).algorithms.items()
        ],
        "formats": lambda: [(n, formats.find(n).description) for n in formats.names()],
    }
    for kind in [what] if what else list(found):
        rows = found[kind]()
        width = max(len(name) for name, _ in rows)
        click.echo(f"{kind}:" if not what else "", nl=not what)
        for name, text in rows:
            click.echo(f"  {name:<{width}}  {text}")


@cli.command()
@click.argument("topology")
@_settings
@_json
def show(topology: str, settings: tuple[str, ...], json_to: str | None) -> None:
    """Show the counts of TOPOLOGY, from its parameters alone, and where its figures come from."""
    from fabricsim import catalog

    spec = catalog.topology(topology, **_parse_settings(settings, only="topology")["topology"])
    counts = spec.builder.count(spec.parameters)
    if json_to:
        keys = (
            "endpoints",
            "switches",
            "nics",
            "switch_links",
            "endpoint_links",
            "injection_Bps",
            "bisection_Bps",
            "diameter",
            "degree",
            "copper_cables",
        )
        data = {"name": spec.name} | {key: getattr(counts, key) for key in keys}
        data["switches_by_kind"] = dict(counts.switches_by_kind)
        data["notes"] = list(counts.notes)
        _write(json_to, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    if json_to != "-":
        click.echo(_counts_table(spec, counts), nl=False)


def _counts_table(spec: Topology, counts: Counts) -> str:
    from fabricsim.units import show as quantity

    kinds = ", ".join(f"{n:,} {kind}" for kind, n in counts.switches_by_kind.items())
    rows = [
        ("endpoints", f"{counts.endpoints:,}"),
        ("switches", f"{counts.switches:,}" + (f"  ({kinds})" if kinds else "")),
        (
            "cables",
            f"{counts.endpoint_links:,} at endpoints, {counts.switch_links:,} between switches",
        ),
        ("degree", f"{counts.degree} cables at an endpoint"),
        ("diameter", f"{counts.diameter} links"),
        ("injection", f"{quantity(counts.injection_Bps, 'B/s')} an endpoint, one direction"),
    ]
    if counts.nics:
        rows.insert(2, ("NICs", f"{counts.nics:,}"))
    if counts.bisection_Bps is not None:
        rows.append(("bisection", f"{quantity(counts.bisection_Bps, 'B/s')}, one direction"))
    if counts.copper_cables is not None:
        rows.append(("copper", f"{counts.copper_cables:,} cables, one for each backplane lane"))
    lines = [f"{spec.name}: {spec.description}" if spec.description else spec.name, ""]
    lines += [f"  {name:<11}{value}" for name, value in rows]
    lines += [f"  note       {note}" for note in counts.notes]
    lines += ["", f"  {spec.builder_name} of:"]
    for name, value in spec.given.items():
        lines.append(f"  {name} = {_toml_like(value)}")
        lines += [f"      {spec.source[name]}"] if spec.source[name] else []
    return "\n".join(lines) + "\n"


def _toml_like(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml_like(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _first_line(function: object) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


def _parse_settings(
    settings: tuple[str, ...], only: str | None = None
) -> dict[str, dict[str, Any]]:
    """Read --set TABLE.PARAM=VALUE; a value that is no TOML is taken as text."""
    tables: dict[str, dict[str, Any]] = {"topology": {}, "traffic": {}}
    for setting in settings:
        path, equals, text = setting.partition("=")
        table, _, name = path.strip().partition(".")
        known = [only] if only else list(tables)
        if not equals or not name or table not in known:
            tops = " or ".join(f"{t}.PARAM=VALUE" for t in known)
            raise SpecError(f"--set {setting}: write {tops}")
        tables[table][name] = _parse_value(text.strip())
    return tables


def _parse_value(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    if text.startswith("[") and text.endswith("]"):
        return [_parse_value(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    return text


def _write(target: str, content: str | bytes) -> None:
    """Write to a file, whole or not at all, or to standard output."""
    if target == "-":
        click.echo(content, nl=False)
        return
    data = content.encode() if isinstance(content, str) else content
    path = Path(target)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise SpecError(f"{target}: cannot be written: {error.strerror}") from None


def main() -> None:
    """Run the command line: status 0, or 2 and one line on standard error."""
    try:
        cli.main(standalone_mode=False)
    except FabricsimError as error:
        _fail(str(error))
    except click.ClickException as error:
        _fail(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        click.echo("fabricsim: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing more to say, and nobody to hear it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _fail(message: str) -> None:
    click.echo("fabricsim: " + " ".join(message.split()), err=True)
    sys.exit(2)
