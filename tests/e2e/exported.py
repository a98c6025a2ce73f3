"""Builds what `warploom export` has written."""

from harness import tool

STRICT = "-Wall -Wextra -Werror"
LANGUAGES = {"C": 0, "CXX": 1, "ASM": 0}  # language of CMake -> index of its compiler in the argument `compiler` of built()


def built(folder, compiler, flags=STRICT, environment=()):
    """Builds an export with a pair of compilers (for C and for C++) in the folder build-COMPILER, and returns that folder."""
    build = folder / f"build-{compiler[0]}"
    compilers = [f"-DCMAKE_{language}_COMPILER={compiler[i]}" for language, i in LANGUAGES.items()]
    tool("cmake", "-G", "Ninja", "-S", folder, "-B", build, *compilers, f"-DCMAKE_CXX_FLAGS={flags}")
    tool("env", *environment, "cmake", "--build", build)
    return build
