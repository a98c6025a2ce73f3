#!/usr/bin/env python3
"""A longer run of the chain of coordinators of tests/fleet/upstream_test.py: each coordinator above the laptop is killed with SIGKILL twice
a round while kernels are fetched through the chain, and each kernel that is tuned at the laptop in between arrives at the site once."""

from chain import Chain, killed_in_traffic, read_through, tuned_below
from harness import WHOLE, Scratch

ROUNDS = 5 if WHOLE else 1


def main():
    with Scratch() as scratch:
        chain = Chain(scratch)
        numbers = iter(range(3, 1000, 2))
        take = lambda count: [next(numbers) for _ in range(count)]  # noqa: E731
        known = take(4)
        at_site = chain.workers("site")
        read_through(chain, known)
        at_laptop = []
        for _ in range(ROUNDS):
            for victim in ("site", "team", "site", "team"):
                fresh = take(4)
                killed_in_traffic(chain, victim, known, fresh)
                known += fresh
            at_laptop = at_laptop or chain.workers("laptop")
            tuned_below(chain, take(2))
        for worker in (*at_site, *at_laptop):
            worker.kill()
        print(f"{ROUNDS} rounds, two coordinators killed twice in each; {len(chain.keys('site'))} kernels at the site")


if __name__ == "__main__":
    main()
