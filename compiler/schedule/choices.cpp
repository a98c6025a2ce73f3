#include "compiler/schedule/choices.h"

#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "compiler/schedule/space.h"

namespace wl {
namespace {

struct KernelKind {
  std::string_view name;  // the word after "class=" in plans of these kernels
  bool gpu;
  std::string_view title;
};

constexpr KernelKind kKernelKinds[] = {
    {"map", false, "Elementwise kernels on CPUs"},
    {"rows", false, "Reductions along rows on CPUs"},
    {"columns", false, "Reductions across rows on CPUs"},
    {"transpose", false, "Elementwise kernels on CPUs that read another axis than they write"},
    {"contract", false, "Contractions on CPUs"},
    {"map", true, "Elementwise kernels on GPUs"},
    {"rows", true, "Reductions along rows on GPUs"},
    {"columns", true, "Reductions across rows on GPUs"},
    {"contract", true, "Contractions on GPUs"},
    {"stitched", false, "Stitched groups on CPUs"},
    {"stitched", true, "Stitched groups on GPUs"},
    {"packed", false, "Packed groups on CPUs"},
    {"packed", true, "Packed groups on GPUs"},
    {"onednn", false, "Products by oneDNN, on CPUs"},
    {"cublaslt", true, "Products by cuBLASLt, on NVIDIA's GPUs"},
    {"hipblaslt", true, "Products by hipBLASLt, on AMD's GPUs"},
};

constexpr uint32_t kCpuMap = 1 << 0, kCpuRows = 1 << 1, kCpuColumns = 1 << 2, kTranspose = 1 << 3,
                   kCpuContract = 1 << 4, kGpuMap = 1 << 5, kGpuRows = 1 << 6, kGpuColumns = 1 << 7,
                   kGpuContract = 1 << 8, kCpuStitched = 1 << 9, kGpuStitched = 1 << 10, kCpuPacked = 1 << 11,
                   kGpuPacked = 1 << 12, kOnednn = 1 << 13, kCublasLt = 1 << 14, kHipblasLt = 1 << 15;
constexpr uint32_t kCpuNests = kCpuMap | kCpuRows | kCpuColumns, kGpuNests = kGpuMap | kGpuRows | kGpuColumns,
                   kNests = kCpuNests | kGpuNests,
                   kOnCpus = kCpuNests | kTranspose | kCpuContract | kCpuStitched | kCpuPacked;

const ChoiceInfo kChoiceRows[] = {
#define Own InGroup::kOwn
#define Shared InGroup::kShared
#define Fixed InGroup::kFixed
#define WL_PAIR(cpus, gpus) \
  { cpus, gpus }
#define WL_LIST(...) \
  { __VA_ARGS__ }
#define CHOICE(id, name, type, absent, values, stitched, packed, plan_1, kinds, meaning) \
  {name, type, WL_LIST values, WL_PAIR stitched, WL_PAIR packed, plan_1, kinds, meaning},
#include "compiler/schedule/choices.def"
#undef CHOICE
#undef WL_PAIR
#undef WL_LIST
#undef Own
#undef Shared
#undef Fixed
};

std::vector<std::string> names_of(const ChoiceInfo& row) {
  if (row.type.find('|') == std::string_view::npos) return {};
  return absl::StrSplit(absl::string_view(row.type.data(), row.type.size()), '|');
}

std::string type_text(const ChoiceInfo& row) {
  const std::vector<std::string> names = names_of(row);
  if (names.empty()) return std::string(row.type);
  std::string out = "one of";
  for (const std::string& name : names) append(&out, " `", name, "`");
  return out;
}

}  // namespace

const ChoiceInfo& info(Choice choice) {
  return kChoiceRows[static_cast<size_t>(choice)];
}

std::optional<Choice> choice_named(std::string_view name) {
  for (size_t i = 0; i < kChoices; ++i)
    if (kChoiceRows[i].name == name) return static_cast<Choice>(i);
  return std::nullopt;
}

std::string value_text(Choice choice, int64_t value) {
  const std::vector<std::string> names = names_of(info(choice));
  if (value >= 0 && value < static_cast<int64_t>(names.size())) return names[static_cast<size_t>(value)];
  return cat(value);
}

bool belongs_to(Choice choice, std::string_view kind, bool gpu) {
  for (size_t i = 0; i < std::size(kKernelKinds); ++i)
    if (kKernelKinds[i].name == kind && kKernelKinds[i].gpu == gpu) return (info(choice).kinds >> i & 1) != 0;
  return false;
}

std::string choices_page() {
  std::string out =
      "# Schedule choices\n\n"
      "What can be chosen for a kernel, by kind of kernel. This page is printed from `compiler/schedule/choices.def`.\n"
      "A plan lists one value for each choice of its space, as in `plan 2 target=cpu:avx512 class=map vector=16 ...`;\n"
      "`warploom inspect --stage space` shows the values that a group leaves open. Stages of a stitched group have "
      "the\n"
      "choices of their own kind as `s0.NAME`, members of a packed group as `m0.NAME`.\n";
  for (size_t i = 0; i < std::size(kKernelKinds); ++i) {
    append(&out, "\n## ", kKernelKinds[i].title, " (`class=", kKernelKinds[i].name, "`)\n\n");
    append(&out, "| choice | values | meaning |\n|---|---|---|\n");
    for (const ChoiceInfo& row : kChoiceRows)
      if ((row.kinds >> i & 1) != 0) append(&out, "| `", row.name, "` | ", type_text(row), " | ", row.meaning, " |\n");
  }
  return out;
}

void Schedule::no_value(Choice choice) {
  check_failed(__FILE__, __LINE__, "has(choice)", cat("the schedule has no ", info(choice).name));
}

const Schedule& Schedule::part(int number) const {
  static const Schedule kNothing;
  return static_cast<size_t>(number) < parts_.size() ? parts_[static_cast<size_t>(number)] : kNothing;
}

std::optional<int64_t> Schedule::find(const Axis& axis) const {
  if (!axis.choice) return std::nullopt;
  const Schedule* of = this;
  for (const int number : axis.path) of = &of->part(number);
  return of->has(*axis.choice) ? std::optional(of->at(*axis.choice)) : std::nullopt;
}

void Schedule::set(const Axis& axis, int64_t value) {
  if (!axis.choice) return;
  Schedule* of = this;
  for (const int number : axis.path) {
    if (of->parts_.size() <= static_cast<size_t>(number)) of->parts_.resize(static_cast<size_t>(number) + 1);
    of = &of->parts_[static_cast<size_t>(number)];
  }
  of->set(*axis.choice, value);
}

}  // namespace wl
