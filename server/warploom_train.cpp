// The program warploom-train: trains a ranker from the trials of a store, for coordinators that are started later.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "compiler/base/status.h"
#include "compiler/base/uncaught.h"
#include "server/training.h"

namespace {

constexpr int kWrongUsage = 1, kBadInput = 2, kUnreachable = 4, kInternal = 7;

absl::Status train(const std::string& store_file, const std::string& out) {
  wl::StoreOptions options;
  options.file = store_file;
  if (!std::filesystem::exists(store_file))
    return absl::NotFoundError(wl::cat("store ", store_file, ": is not there; `warploom tune` makes one"));
  WL_ASSIGN_OR_RETURN(const std::unique_ptr<wl::Store> store, wl::Store::open(options));
  WL_ASSIGN_OR_RETURN(const wl::TrainingRows training, wl::training_rows(*store));
  WL_ASSIGN_OR_RETURN(const wl::Ranker ranker, wl::train_ranker(training.rows));
  std::printf("%zu trials of %d groups; %d trials left out\n", training.rows.size(), training.groups,
              training.left_out);
  if (ranker.forests.empty())
    return absl::NotFoundError(wl::cat("store ", store_file, ": too few trials to learn from; expected ",
                                       wl::kLeastGroups,
                                       " groups of a kind with two correct trials each, tune with more --trials"));
  for (const auto& [kind, forest] : ranker.forests)
    std::printf("%-16s %d trials of %d groups, %zu trees\n", kind.c_str(), forest.rows, forest.groups,
                forest.trees.size());
  // The file is replaced in one step (rename), since a coordinator may be reading it.
  const std::string part = out + ".part";
  std::ofstream file(part, std::ios::binary);
  file << print(ranker);
  file.close();
  std::error_code error;
  if (file.good()) std::filesystem::rename(part, out, error);
  if (!file.good() || error) return absl::PermissionDeniedError(wl::cat("ranker ", out, ": cannot be written"));
  std::printf("written to %s\n", out.c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  wl::explain_uncaught("warploom-train", kInternal);
  std::string store, out;
  CLI::App app(
      "warploom-train: trains the cost model of a store from its trials. The store must not be in use: stop\n"
      "its coordinator, or train from a copy.");
  app.footer("Example: warploom-train --store /var/lib/warploom/store.db");
  app.set_version_flag("--version", WARPLOOM_VERSION);
  app.add_option("--store", store, "the SQLite file with the trials")->required();
  app.add_option("--out", out, "the ranker; STORE.ranker, where coordinators look for it, unless said");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kWrongUsage;
  }
  const absl::Status status = train(store, out.empty() ? wl::ranker_beside(store) : out);
  if (status.ok()) return 0;
  std::fprintf(stderr, "warploom-train: %s\n", std::string(status.message()).c_str());
  return absl::IsUnavailable(status) ? kUnreachable : kBadInput;
}
