#!/usr/bin/env python3
"""check_access must name the file and the line of every rpc without the option `access`, which says who may call the rpc."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("WARPLOOM_BIN_DIR", SOURCE / "build/release/bin")) / "check_access"

OPTION = (SOURCE / "proto/warploom/v1/access.proto").read_text()
SERVICE = """syntax = "proto3";
package warploom.v1;
import "warploom/v1/access.proto";
service Doors {
  rpc Open(Nothing) returns (Nothing) {
    option (access) = {roles: [OPERATOR]};
  }
  rpc Close(Nothing) returns (Nothing)%s
}
message Nothing {}
"""


def check(end):
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder) / "warploom/v1"
        there.mkdir(parents=True)
        (there / "access.proto").write_text(OPTION)
        (there / "doors.proto").write_text(SERVICE % end)
        set_of = pathlib.Path(folder) / "descriptors"
        protoc = ["protoc", f"--proto_path={folder}", "--include_imports", "--include_source_info"]
        subprocess.run([*protoc, f"--descriptor_set_out={set_of}", there / "doors.proto"], check=True)
        return subprocess.run([PROGRAM, set_of], capture_output=True, text=True)


class Access(unittest.TestCase):
    def test_an_rpc_with_roles_passes(self):
        done = check("{ option (access) = {roles: [CLIENT, WORKER]}; }")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_rpc_without_roles_fails(self):
        for end in (";", "{}", "{ option (access) = {}; }", "{ option deprecated = true; }"):
            done = check(end)
            self.assertEqual(done.returncode, 1, end)
            self.assertIn("proto/warploom/v1/doors.proto:8: rpc Doors.Close does not say", done.stderr)
            self.assertIn("add `option (access)", done.stderr)

    def test_what_is_no_file_of_descriptors_fails(self):
        done = subprocess.run([PROGRAM, __file__], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected one file of descriptors", done.stderr)


if __name__ == "__main__":
    unittest.main()
