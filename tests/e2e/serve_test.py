#!/usr/bin/env python3
"""Eight threads run one model of the C library, each with an executor of its own: 100000 requests each in a build with the thread sanitizer,
which must find nothing, and 2000 in others."""

import re

import graphs
from harness import BIN, Scratch, expect, tool


def main():
    watched = "libtsan" in tool("ldd", BIN / "serve")
    requests = 100000 if watched else 2000
    with Scratch() as scratch:
        (scratch.root / "m.graph").write_text(graphs.LAYER)
        scratch.run("warploom", "tune", "m.graph", "--weight", "w", "--trials", "2", "--kernels-alone", "--out", "tuned")
        done = scratch.run("serve", "tuned", 8, requests)
        expect("ThreadSanitizer" not in done.err, done.err[-3000:])
        served = re.findall(rf"^thread (\d): {requests} requests", done.out, re.M)
        expect(served == [str(i) for i in range(8)], done.out)


if __name__ == "__main__":
    main()
