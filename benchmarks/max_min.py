"""Time of the max-min solver against sparse products with the same matrix, in one process.

    python -m benchmarks.max_min

One pair of products is A @ x and A.T @ y, both with the matrix in CSR form. Times are medians of
five; peak memory is what the solver allocates beyond the routes, as tracemalloc sees NumPy do it.
"""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy import sparse

from benchmarks.instances import fat_tree
from fabricsim.solver.certificate import max_min_violation
from fabricsim.solver.max_min import max_min_rates


def median_s(work: Callable[[], object], runs: int = 5) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def pair_s(routes: sparse.csr_array) -> float:
    flows, links = routes.shape
    across = routes.T.tocsr()
    x, y = np.ones(links), np.ones(flows)

    def pair() -> None:
        _ = routes @ x
        _ = across @ y

    return median_s(pair, runs=11)


def peak_B(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    head = f"{'k':>3}{'flows':>11}{'entries':>11}{'time':>9}{'pair':>9}{'pairs':>7}"
    print(head + f"{'peak':>9}{'B/entry':>9}{'violation':>11}")
    solved = {}
    for k, flows in [(16, 10_000), (16, 100_000), (16, 900_000), (32, 10_000), (32, 100_000),
                     (32, 1_000_000)]:  # fmt: skip
        routes = fat_tree(k, flows)
        capacity = np.ones(routes.shape[1])
        rates = max_min_rates(routes, capacity)
        took = median_s(lambda r=routes, c=capacity: max_min_rates(r, c))  # type: ignore[misc]
        pair = pair_s(routes)
        peak = peak_B(lambda r=routes, c=capacity: max_min_rates(r, c))  # type: ignore[misc]
        solved[k, flows] = took
        violation = max_min_violation(routes, capacity, rates)
        print(
            f"{k:>3}{flows:>11,}{routes.nnz:>11,}{took:>8.3f}s{pair * 1e3:>7.2f}ms"
            f"{took / pair:>7.1f}{peak / 1e6:>7.0f}MB{peak / routes.nnz:>9.1f}{violation:>11.1e}"
        )
    for k, low, high in [(16, 10_000, 900_000), (32, 10_000, 1_000_000)]:
        grown = np.log(solved[k, high] / solved[k, low]) / np.log(high / low)
        print(f"k = {k}: time grows as flows^{grown:.2f} from {low:,} to {high:,}")


if __name__ == "__main__":
    main()
