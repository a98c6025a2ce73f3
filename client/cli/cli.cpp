#include "client/cli/cli.h"

#include <cstdio>

#include "client/program/files.h"

namespace wl {

absl::StatusOr<std::string> default_store() {
  const std::string folder = user_cache_folder();
  if (!folder.empty()) return cat(folder, "/store.db");
  return invalid("no place for the store: neither XDG_CACHE_HOME nor HOME is set; give --store FILE");
}

absl::Status write_report(const std::string& where, const std::string& text) {
  if (where.empty()) return absl::OkStatus();
  if (where != "-") return write_file(where, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return absl::ResourceExhaustedError("cannot write the report to stdout");
  }
  return absl::OkStatus();
}

}  // namespace wl
