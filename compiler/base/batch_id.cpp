#include "compiler/base/batch_id.h"

#include "absl/strings/str_cat.h"

namespace wl {

std::string batch_id(int64_t search, int64_t phase, int64_t first_trial) {
  return absl::StrCat("s", search, "/p", phase, "/t", first_trial);
}

std::string search_of(const std::string& batch_id) {
  return batch_id.substr(0, batch_id.find('/'));
}

}  // namespace wl
