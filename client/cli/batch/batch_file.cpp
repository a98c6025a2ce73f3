#include "client/cli/batch/batch_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "absl/strings/str_join.h"
#include "client/cli/values.h"
#include "compiler/base/libraries.h"
#include "compiler/base/names.h"
#include "compiler/base/suggest.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

// The values of one [[model]] table of a batch file, or those that stand before all tables, which are the defaults of
// every model.
struct ModelRow {
  std::string file, name;
  BindValues bind;
  std::vector<std::string> targets = {"cpu"};
  bool allow_tf32 = false;
  TuneOptions options;
};

absl::Status read_text(const toml::node& node, std::string* out) {
  const auto text = node.value_exact<std::string>();
  if (!text || text->empty()) return invalid("expected a text");
  *out = *text;
  return absl::OkStatus();
}

absl::Status read_word(const toml::node& node, const std::vector<std::string>& words, std::string* out) {
  const auto text = node.value_exact<std::string>();
  if (!text || std::find(words.begin(), words.end(), *text) == words.end())
    return invalid("expected one of \"", absl::StrJoin(words, "\", \""), "\"", suggestion(text.value_or(""), words));
  *out = *text;
  return absl::OkStatus();
}

template <typename Integer>
absl::Status read_integer(const toml::node& node, int64_t least, int64_t most, Integer* out) {
  const auto value = node.value_exact<int64_t>();
  if (!value || *value < least || *value > most) return invalid("expected a whole number from ", least, " to ", most);
  *out = static_cast<Integer>(*value);
  return absl::OkStatus();
}

absl::Status read_flag(const toml::node& node, bool* out) {
  const auto value = node.value_exact<bool>();
  if (!value) return invalid("expected true or false");
  *out = *value;
  return absl::OkStatus();
}

// Whether a text may be used as the name of a folder.
bool makes_folder(const std::string& text) {
  return text.find('/') == std::string::npos && check_text("name", text, TextKind::kPath, 128).ok();
}

absl::Status read_name(const toml::node& node, std::string* out) {
  WL_RETURN_IF_ERROR(read_text(node, out));
  if (makes_folder(*out)) return absl::OkStatus();
  return invalid("expected at most 128 letters, digits, '_', '-' and '.', of which '.' is not the first");
}

// Returns the name of a target's folder: "cuda-sm_90a" for "cuda:sm_90a".
std::string folder_of(const std::string& target) {
  std::string folder = target;
  std::replace(folder.begin(), folder.end(), ':', '-');
  return folder;
}

absl::Status read_targets(const toml::node& node, std::vector<std::string>* out) {
  const toml::array* list = node.as_array();
  out->clear();
  if (list != nullptr) {
    for (const toml::node& item : *list) WL_RETURN_IF_ERROR(read_text(item, &out->emplace_back()));
  }
  const bool plain =
      std::all_of(out->begin(), out->end(), [](const auto& one) { return makes_folder(folder_of(one)); });
  if (!plain || out->empty() || std::set<std::string>(out->begin(), out->end()).size() != out->size())
    return invalid("expected a list of targets, each once, such as [\"cpu\"]; `warploom targets` has them");
  return absl::OkStatus();
}

absl::Status read_budget(const toml::node& node, double* out) {
  const auto text = node.value_exact<std::string>();
  if (!text) return invalid("expected a text such as \"90s\", \"5m\" or \"1h\"");
  WL_ASSIGN_OR_RETURN(*out, parse_seconds(*text));
  return absl::OkStatus();
}

absl::Status read_bind(const toml::node& node, BindValues* out) {
  constexpr const char* kExpected = "expected extents of symbolic dimensions, such as { batch = [1, 8], n = 64 }";
  const toml::table* table = node.as_table();
  if (table == nullptr || table->empty()) return invalid(kExpected);
  for (const auto& row : *table) {
    std::vector<int64_t>& extents = (*out)[std::string(row.first.str())];
    const auto add = [&](const toml::node& one) {
      return read_integer(one, 0, std::numeric_limits<int64_t>::max(), &extents.emplace_back());
    };
    const toml::array* list = row.second.as_array();
    if (list == nullptr) {
      WL_RETURN_IF_ERROR(add(row.second));
      continue;
    }
    for (const toml::node& one : *list) WL_RETURN_IF_ERROR(add(one));
    if (extents.empty() || std::set<int64_t>(extents.begin(), extents.end()).size() != extents.size())
      return invalid(kExpected, ", each extent once");
  }
  return absl::OkStatus();
}

absl::Status read_libraries(const toml::node& node, std::string* libraries) {
  return read_word(node, library_choices(), libraries);
}

absl::Status read_measure(const toml::node& node, bool* cold) {
  std::string how;
  WL_RETURN_IF_ERROR(read_word(node, {"warm", "cold"}, &how));
  *cold = how == "cold";
  return absl::OkStatus();
}

struct Key {
  const char* name;
  // Whether the key may also stand before all models, and then applies to each of them.
  bool of_all;
  absl::Status (*read)(const toml::node& node, ModelRow& row);
};
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr Key kKeys[] = {
    {"file", false, [](const toml::node& node, ModelRow& row) { return read_text(node, &row.file); }},
    {"name", false, [](const toml::node& node, ModelRow& row) { return read_name(node, &row.name); }},
    {"bind", false, [](const toml::node& node, ModelRow& row) { return read_bind(node, &row.bind); }},
    {"targets", true, [](const toml::node& node, ModelRow& row) { return read_targets(node, &row.targets); }},
    {"trials", true,
     [](const toml::node& node, ModelRow& row) { return read_integer(node, 1, 1'000'000, &row.options.trials); }},
    {"budget", true, [](const toml::node& node, ModelRow& row) { return read_budget(node, &row.options.budget_s); }},
    {"effort", true,
     [](const toml::node& node, ModelRow& row) { return read_word(node, effort_names(), &row.options.effort); }},
    {"strategy", true, [](const toml::node& node, ModelRow& row) { return read_text(node, &row.options.strategy); }},
    {"libraries", true,
     [](const toml::node& node, ModelRow& row) { return read_libraries(node, &row.options.libraries); }},
    {"allow_tf32", true, [](const toml::node& node, ModelRow& row) { return read_flag(node, &row.allow_tf32); }},
    {"cover", true, [](const toml::node& node, ModelRow& row) { return read_text(node, &row.options.cover); }},
    {"measure", true, [](const toml::node& node, ModelRow& row) { return read_measure(node, &row.options.cold); }},
    {"seed", true,
     [](const toml::node& node, ModelRow& row) { return read_integer(node, 0, kMost, &row.options.seed); }},
    {"at_once", true,
     [](const toml::node& node, ModelRow& row) { return read_integer(node, 0, 1024, &row.options.at_once); }},
    {"kernels_alone", true,
     [](const toml::node& node, ModelRow& row) { return read_flag(node, &row.options.kernels_alone); }},
    {"background", true,
     [](const toml::node& node, ModelRow& row) { return read_flag(node, &row.options.background); }},
    {"retune", true, [](const toml::node& node, ModelRow& row) { return read_flag(node, &row.options.retune); }},
};

// Converts the parsed TOML tables of a batch file. Error messages begin with the file and the line.
class FileReader {
 public:
  FileReader(const toml::table& table, std::string path) : table_(table), path_(std::move(path)) {}

  absl::StatusOr<BatchFile> read() {
    ModelRow shared;
    for (const auto& row : table_) {
      const std::string key(row.first.str());
      if (key == "model") continue;
      if (key == "out") {
        if (const absl::Status read = read_text(row.second, &batch_.out); !read.ok())
          return wrong(row.second, key, read);
        continue;
      }
      WL_RETURN_IF_ERROR(read_key(row.first, row.second, /*of_all=*/true, shared));
    }
    if (batch_.out.empty()) return invalid(path_, ": no key \"out\"; expected out = \"FOLDER\", where the bundles go");
    batch_.out = beside(batch_.out);
    const toml::node* models = table_.get("model");
    const toml::array* list = models == nullptr ? nullptr : models->as_array();
    if (list == nullptr || list->empty())
      return invalid(path_, ": no model; expected [[model]] and below it file = \"MODEL.onnx\"");
    for (const toml::node& node : *list) WL_RETURN_IF_ERROR(add_model(node, shared));
    return std::move(batch_);
  }

 private:
  absl::Status wrong(const toml::node& node, const std::string& key, const absl::Status& why) const {
    return invalid(path_, ", line ", node.source().begin.line, ": ", key, ": ", std::string(why.message()));
  }

  absl::Status read_key(const toml::key& key, const toml::node& node, bool of_all, ModelRow& row) const {
    const auto known =
        std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& one) { return key.str() == one.name; });
    if (known != std::end(kKeys) && (!of_all || known->of_all)) {
      const absl::Status read = known->read(node, row);
      return read.ok() ? read : wrong(node, known->name, read);
    }
    std::vector<std::string> names;
    if (of_all) names = {"out", "model"};
    for (const Key& one : kKeys)
      if (!of_all || one.of_all) names.emplace_back(one.name);
    return invalid(path_, ", line ", key.source().begin.line, ": unknown key \"", std::string(key.str()),
                   of_all ? "\" outside [[model]]" : "\" of a model", suggestion(key.str(), names),
                   "; expected one of ", absl::StrJoin(names, ", "));
  }

  absl::Status add_model(const toml::node& node, const ModelRow& shared) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return wrong(node, "model", invalid("expected [[model]]"));
    ModelRow row = shared;
    for (const auto& item : *table) WL_RETURN_IF_ERROR(read_key(item.first, item.second, /*of_all=*/false, row));
    if (row.file.empty()) return wrong(node, "model", invalid("no key \"file\"; expected file = \"MODEL.onnx\""));
    if (row.name.empty()) {
      const toml::value<std::string> stem(fs::path(row.file).stem().string());
      if (const absl::Status read = read_name(stem, &row.name); !read.ok())
        return wrong(node, "model", invalid("the file's name makes no folder; give it a name = \"...\""));
    }
    for (const std::string& target : row.targets) {
      BatchRun& run = batch_.runs.emplace_back();
      run.name = cat(row.name, "/", folder_of(target));
      run.file = beside(row.file);
      run.out = (fs::path(batch_.out) / run.name).string();
      run.bind = row.bind;
      run.allow_tf32 = row.allow_tf32;
      run.options = row.options;
      run.options.target = target;
      if (!names_.insert(run.name).second)
        return wrong(node, "name", invalid("a model before it makes ", run.name, " too; give this one another name"));
    }
    return absl::OkStatus();
  }

  std::string beside(const std::string& file) const { return (fs::path(path_).parent_path() / file).string(); }

  const toml::table& table_;
  std::string path_;
  BatchFile batch_;
  std::set<std::string> names_;
};

}  // namespace

absl::StatusOr<BatchFile> parse_batch(const std::string& text, const std::string& path) {
  try {
    const toml::table table = toml::parse(text, path);
    return FileReader(table, path).read();
  } catch (const toml::parse_error& error) {
    return invalid(path, ", line ", error.source().begin.line, ": ", std::string(error.description()));
  }
}

}  // namespace wl
