#!/usr/bin/env python3
"""The container images of deploy/containers, built by buildah from the Debian packages on a fresh Debian 12, which is downloaded. A
coordinator and a worker in containers tune a graph, each as the user of its image, and the images for GPUs contain the run-time compiler of
their GPUs."""

import os
import pathlib
import re
import shutil
import subprocess

import graphs
from documented import documented
from harness import SOURCE, Scratch, expect, skip
from slurm import free_port

PACKAGES = SOURCE / "build/packages"
AUTHORITIES = pathlib.Path("/usr/local/share/ca-certificates")
FILE = SOURCE / "deploy/containers/Containerfile"
# Target -> the command of deploy/README.md that builds its image.
BUILD = {
    "coordinator": documented("buildah build --target coordinator "),
    "worker": documented("buildah build --target worker "),
    "worker-cuda": documented("buildah build --target worker-cuda "),
    "worker-rocm": documented("buildah build --target worker-rocm "),
}
# Name of an image for GPUs -> its library for compiling at run time. The GPU driver comes from the machine, not from the image.
GPU_IMAGES = {"worker-cuda": "libnvrtc.so.12", "worker-rocm": "libamdhip64.so.5"}


class Images:
    """The images and containers that are made in the test's folder."""

    def __init__(self, scratch):
        self.scratch = scratch
        root = scratch.root
        self.options = ["--root", root / "images", "--runroot", root / "run", "--storage-driver", "vfs"]
        scratch.at_end.append(lambda: subprocess.run(self.command("rm", "--all"), capture_output=True))

    def command(self, verb, *arguments):
        return [shutil.which("buildah"), *map(str, self.options), verb, *map(str, arguments)]

    def __call__(self, verb, *arguments):
        done = subprocess.run(self.command(verb, *arguments), capture_output=True, text=True, timeout=900)
        expect(done.returncode == 0, f"buildah {verb} {arguments}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout.strip()

    def base(self):
        """Makes an image of a fresh Debian 12."""
        root = self.scratch.root / "debian"
        done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root], capture_output=True, text=True)
        expect(done.returncode == 0, done.stdout[-2000:])
        # Adds the certificate authorities that this machine trusts besides Debian's own, such as the authority of a proxy.
        shutil.copytree(AUTHORITIES, root / AUTHORITIES.relative_to("/"), dirs_exist_ok=True)
        container = self("from", "scratch")
        self("add", "--quiet", container, root, "/")
        self("commit", "--quiet", "--rm", container, "debian12")
        shutil.rmtree(root)

    def build(self, target):
        """Builds an image by the command of deploy/README.md, with the test's folders and base image."""
        beginning = "buildah build "
        expect(BUILD[target].startswith(beginning) and f"warploom-{target}:0.1.0 " in BUILD[target], BUILD[target])
        command = self.command("build", "--isolation", "chroot", "--build-arg", "BASE=localhost/debian12")
        done = subprocess.run([*command, *BUILD[target][len(beginning):].split()], cwd=SOURCE, capture_output=True, text=True, timeout=900)
        expect(done.returncode == 0, f"{BUILD[target]}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}")

    def container(self, target):
        return self("from", "--pull-never", f"warploom-{target}:0.1.0")

    def said(self, target, script):
        """Returns the output of a script in the image. It goes through a file, since on a busy machine `buildah run` may lose output."""
        container = self.container(target)
        self("run", "--isolation", "chroot", container, "--", "sh", "-c", f"({script}) > /tmp/said")
        return (pathlib.Path(self("mount", container)) / "tmp/said").read_text()

    def start(self, target, *arguments):
        """Starts the image's program as the image's user."""
        container = self.container(target)
        program = self("inspect", "--format", "{{index .OCIv1.Config.Entrypoint 0}}", container)
        return self.scratch.start(*self.command("run", "--isolation", "chroot", container, "--", program, *arguments), name=target)


def check_images_of_manifests():
    """Every image that the manifests name can be built, and its version is that of the packages."""
    version = re.search(r"_([\d.]+)_", next(PACKAGES.glob("warploom_*.deb")).name).group(1)
    targets = set(re.findall(r"^FROM \S+ AS (\S+)", FILE.read_text(), re.MULTILINE))
    named = {image for path in (SOURCE / "deploy/kubernetes").rglob("*.yaml") for image in re.findall(r"image: (\S+)", path.read_text())}
    expect(named and named <= {f"warploom-{target}:{version}" for target in targets}, f"{named}, {targets}, {version}")


def main():
    if os.geteuid() != 0:
        skip("only root can make a fresh system")
    if shutil.which("buildah") is None or shutil.which("debootstrap") is None or len(list(PACKAGES.glob("*.deb"))) != 3:
        skip("buildah, debootstrap or the packages are missing; `make test-cluster` has all of them")
    check_images_of_manifests()
    with Scratch() as scratch:
        images = Images(scratch)
        images.base()
        for target in BUILD:
            images.build(target)
        server = f"localhost:{free_port()}"
        images.start("coordinator", "--store", "/var/lib/warploom/store.db", "--listen", server)
        scratch.logged("coordinator", "(listening) on", "the coordinator listens")
        # The worker has no sandbox, since pods of most clusters cannot make namespaces.
        images.start("worker", "--server", server, "--work-dir", "/work", "--sandbox", "none")
        (scratch.root / "g.graph").write_text(graphs.SOFTMAX)
        done = scratch.run("warploom", "tune", "g.graph", "--trials", 3, "--out", "bundle", "--server", server)
        expect("bundle: bundle" in done.out, done.out)
        for target, library in GPU_IMAGES.items():
            said = images.said(target, "id -u; ldconfig -p")
            expect(said.startswith("10002\n") and library in said, f"{target}: {said}")
        print("built and used: coordinator, worker,", ", ".join(GPU_IMAGES))


if __name__ == "__main__":
    main()
