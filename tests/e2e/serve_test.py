#!/usr/bin/env python3
"""Eight threads run one model of the C library, each with an executor of its own: 10^5 requests each where the thread sanitizer looks on, which
must find nothing; fewer otherwise."""

import re

from harness import BIN, Scratch, expect, tool

MODEL = """graph {
  %0 = input "x" : f32[8,32] normal(0,1)
  %1 = input "w" : f32[32,16] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[8,16]
  %3 = tanh %2 : f32[8,16]
  output "y" %3
}
"""


def main():
    watched = "libtsan" in tool("ldd", BIN / "serve")
    requests = 100000 if watched else 2000
    with Scratch() as scratch:
        (scratch.root / "m.graph").write_text(MODEL)
        scratch.run("warploom", "tune", "m.graph", "--weight", "w", "--trials", "2", "--kernels-alone", "--out", "tuned")
        done = scratch.run("serve", "tuned", 8, requests)
        expect("ThreadSanitizer" not in done.err, done.err[-3000:])
        served = re.findall(rf"^thread (\d): {requests} requests", done.out, re.M)
        expect(served == [str(i) for i in range(8)], done.out)


if __name__ == "__main__":
    main()
