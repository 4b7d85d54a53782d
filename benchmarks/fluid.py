"""Time of a skewed all-to-all over one ideal switch, every transfer of another size.

    python -m benchmarks.fluid

SimGrid 4.1 takes 1.1 s for 64 endpoints and 94 to 105 s for 144, and gives the makespans below.
"""

import time

from benchmarks.instances import skewed_all_to_all
from fabricsim.solver.fluid import fluid_times

MAKESPAN_S = {64: 155.796505251, 144: 314.238229168}


def main() -> None:
    print(f"{'endpoints':>9}{'transfers':>11}{'time':>9}{'makespan':>20}{'off SimGrid by':>16}")
    for endpoints, known in MAKESPAN_S.items():
        problem = skewed_all_to_all(endpoints)
        start = time.perf_counter()
        last = float(fluid_times(*problem).max())
        took = time.perf_counter() - start
        print(
            f"{endpoints:>9}{len(problem[2]):>11,}{took:>8.2f}s{last:>18.9f} s"
            f"{abs(last / known - 1):>16.1e}"
        )


if __name__ == "__main__":
    main()
