#include "tests/unit/worker/gpu_testing.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/target/target.h"

namespace wl::testing {

WithoutClang::WithoutClang() : path_(std::getenv("PATH")) {
  namespace fs = std::filesystem;
  for (const absl::string_view folder : absl::StrSplit(path_, ':')) {
    std::error_code error;
    for (auto at = fs::directory_iterator(std::string(folder), error); at != fs::end(at); at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (!name.starts_with("clang++")) continue;
      add(name, "exit 1");
    }
  }
  setenv("PATH", absl::StrCat(scratch_.path(""), ":", path_).c_str(), 1);
}

void WithoutClang::add(const std::string& name, const std::string& script) const {
  std::ofstream(scratch_.path(name)) << "#!/bin/sh\n" << script << "\n";
  std::filesystem::permissions(scratch_.path(name), std::filesystem::perms::owner_all);
}

Specimen good_specimen() {
  return {"good", WL_GOOD, Outcome::kCorrect, ""};
}

Candidate gpu_candidate(int64_t trial, const std::string& target, const Specimen& specimen) {
  Candidate made;
  made.trial = trial;
  made.plan = absl::StrCat("plan ", trial, " ", specimen.name);
  Source& source = made.source;
  source.target = target;
  source.compiler = "nvrtc";
  source.prelude = prelude_text(*target_named(target).value(), 4);
  source.entry = absl::StrCat("wl_", specimen.name, "_", trial);
  source.grid = 4;
  source.threads = specimen.threads;
  source.scratch_bytes = specimen.shared;
  source.text =
      absl::StrCat(specimen.before, "\nWL_KERNEL(", source.entry,
                   ", 4, 256, WL_IN(f32, p0, 1024), WL_IN(f32, p1, 1024), WL_OUT(f32, p2, 1024)) {\n  WL_ENTER;\n",
                   specimen.fault[0] != 0 ? absl::StrCat("  // fault: ", specimen.fault, "\n") : "",
                   "  const int i = (int)block * 256 + thread;\n  ", specimen.body, "\n}\n");
  return made;
}

}  // namespace wl::testing
