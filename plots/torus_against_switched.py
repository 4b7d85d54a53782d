"""Bus bandwidth of a whole-domain all-to-all: Trainium2's torus against Trainium3's racks.

    python plots/torus_against_switched.py

writes docs/gallery/torus-against-switched.png.
"""

from pathlib import Path

from fabricsim import load_topology, load_traffic, simulate
from fabricsim.plotting import busbw_against_size, save

TOPOLOGIES = ["trn2-nl64", "trn3-nl32x2-gen1", "trn3-nl72x2-gen1", "gb200-nvl72"]
SIZES_KIB = [4**k for k in range(10)]


def main() -> None:
    fabrics = {name: load_topology(name) for name in TOPOLOGIES}
    series = {
        f"{name} ({len(fabric.endpoints)} chips)": [
            simulate(fabric, load_traffic("all-to-all", size=f"{kib} KiB")) for kib in SIZES_KIB
        ]
        for name, fabric in fabrics.items()
    }
    title = "All-to-all over the whole domain; size is the send buffer of a chip"
    target = Path(__file__).parents[1] / "docs" / "gallery" / "torus-against-switched.png"
    target.parent.mkdir(exist_ok=True)
    save(busbw_against_size(series, title), target)


if __name__ == "__main__":
    main()
