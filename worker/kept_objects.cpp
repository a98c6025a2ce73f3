#include "worker/kept_objects.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/base/sha256.h"
#include "compiler/base/status.h"
#include "worker/drivers/files.h"

namespace wl {
namespace {

// Returns the hash of everything that an object depends on. The compilers are left out, since they do not change while
// the worker lives.
std::string key_of(const Source& source) {
  return Encoder("kept object", 1)
      .text(source.target)
      .text(source.compiler)
      .text(source.prelude)
      .text(source.text)
      .hash();
}

}  // namespace

void KeptObjects::keep(const Source& source, std::string object, double compile_s) {
  if (object.size() > most_bytes_) return;
  std::string key = key_of(source);
  if (const auto at = by_key_.find(key); at != by_key_.end()) {
    bytes_ -= at->second->bytes.size();
    objects_.erase(at->second);
    by_key_.erase(at);
  }
  bytes_ += object.size();
  objects_.push_front({std::move(key), std::move(object), compile_s});
  by_key_[objects_.front().key] = objects_.begin();
  while (bytes_ > most_bytes_) {
    bytes_ -= objects_.back().bytes.size();
    by_key_.erase(objects_.back().key);
    objects_.pop_back();
  }
}

const std::string* KeptObjects::find(const Source& source, double* compile_s) {
  const auto at = by_key_.find(key_of(source));
  if (at == by_key_.end()) return nullptr;
  objects_.splice(objects_.begin(), objects_, at->second);
  if (compile_s != nullptr) *compile_s = std::exchange(at->second->compile_s, 0);
  return &at->second->bytes;
}

absl::StatusOr<std::vector<Compiled>> KeptObjects::provide(
    const std::vector<Candidate>& candidates, const std::string& folder,
    const std::function<absl::StatusOr<std::vector<Compiled>>(const std::vector<Candidate>&)>& compile) {
  std::vector<Compiled> out(candidates.size());
  std::vector<Candidate> missing;
  std::vector<size_t> places;  // for each element of `missing`, the index in `out` of its result
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string* const object = find(candidates[i].source, &out[i].seconds);
    if (object == nullptr) {
      missing.push_back(candidates[i]);
      places.push_back(i);
      continue;
    }
    out[i].outcome = Outcome::kCorrect;
    out[i].object = absl::StrCat(folder, "/kept", i, ".so");
    WL_RETURN_IF_ERROR(write_parts(out[i].object, {*object}));
  }
  WL_ASSIGN_OR_RETURN(std::vector<Compiled> compiled, compile(missing));
  for (size_t m = 0; m < missing.size(); ++m) out[places[m]] = std::move(compiled[m]);
  return out;
}

}  // namespace wl
