// The choices of a kernel's schedule. Each row of choices.def is an enumerator of Choice, so that code with an unknown
// choice does not compile. A Schedule maps choices to their values: schedule[kVector].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wl {

enum class Choice : uint8_t {
#define CHOICE(id, ...) id,
#include "compiler/schedule/choices.def"
#undef CHOICE
};
using enum Choice;

inline constexpr size_t kChoices = 0
#define CHOICE(...) +1
#include "compiler/schedule/choices.def"
#undef CHOICE
    ;

// How a choice of a part's space appears in the space of the whole group. A part is a stage of a stitched group, or a
// kind of member (members with equal graphs) of a packed one.
enum class InGroup : uint8_t {
  kOwn,     // each part has its own axis
  kShared,  // all parts have one axis together
  kFixed,   // there is no axis: the value is that of the part's first seed, or is computed from other choices
};

// A row of choices.def.
struct ChoiceInfo {
  std::string_view name, type;
  std::vector<int64_t> values;  // values of the axis if all groups have the same; else empty
  // How stages (`stitched`) and members (`packed`) have the choice: [0] on CPUs, [1] on GPUs.
  InGroup stitched[2], packed[2];
  std::string_view plan_1;  // the choice's names in plans of version 1, separated by |
  uint32_t kinds;           // bit i is set if kernels of kKernelKinds[i] may have the choice
  std::string_view meaning;
};

// A value that no axis has. In a schedule it means that nothing was chosen; in the column `absent` of choices.def it
// means that kernels read the choice only where their space has it.
inline constexpr int64_t kVaries = INT64_MIN;

// The column `absent` of choices.def. It is stored apart from the other columns so that a Schedule reads it without a
// function call, because enumerating a space spends much of its time on such reads.
inline constexpr std::array<int64_t, kChoices> kAbsent = {
#define CHOICE(id, name, type, absent, ...) absent,
#include "compiler/schedule/choices.def"
#undef CHOICE
};

// Constants for the values of choices whose values have names.
inline constexpr int64_t kGcc = 0, kClang = 1;                                      // values of kCompiler
inline constexpr int64_t kKeepCostly = 0, kKeepAll = 1;                             // values of kKeep
inline constexpr int64_t kCopyTaps = 0, kCopyRows = 1, kCopyWhole = 2;              // values of kCopyImage
inline constexpr int64_t kDividedRows = 0, kDividedColumns = 1, kDividedBatch = 2;  // values of kDivided
// Value of kMatrix without a matrix instruction; value 1 + n is row n of target/matrix.def.
inline constexpr int64_t kNoMatrix = 0;
inline constexpr int64_t kRowRecomputed = 0, kRowInShared = 1, kRowInRegisters = 2;  // values of kRowStorage

const ChoiceInfo& info(Choice choice);
inline std::string_view name_of(Choice choice) {
  return info(choice).name;
}
std::optional<Choice> choice_named(std::string_view name);
// The text of a value in plans: its name where the choice has named values, else the number.
std::string value_text(Choice choice, int64_t value);
// Whether kernels of a kind may have the choice; `kind` is the word after "class=" in a plan.
bool belongs_to(Choice choice, std::string_view kind, bool gpu);
// Returns the text of docs/schedule.md: a table of choices for every kind of kernel, in Markdown.
std::string choices_page();

struct Axis;

// The values that were chosen for one kernel and, if it is stitched or packed, for each of its parts. A choice may be
// without a value.
class Schedule {
 public:
  Schedule() { values_.fill(kVaries); }
  // Returns the chosen value or, if there is none, the choice's entry in the column `absent` of choices.def. Aborts if
  // that entry is kVaries.
  int64_t operator[](Choice choice) const {
    const int64_t value = at(choice);
    if (value != kVaries) [[likely]]
      return value;
    const int64_t absent = kAbsent[static_cast<size_t>(choice)];
    if (absent == kVaries) [[unlikely]]
      no_value(choice);
    return absent;
  }
  bool has(Choice choice) const { return at(choice) != kVaries; }
  void set(Choice choice, int64_t value) { values_[static_cast<size_t>(choice)] = value; }
  // The schedule of one stage of a stitched group, or of one kind of member of a packed one, by number. It is empty
  // where nothing was chosen for that part.
  const Schedule& part(int number) const;
  // find() and set() for the choice of an axis, in the part of the schedule to which the axis's path leads. find()
  // returns nullopt if nothing was chosen, or if the axis has no choice.
  std::optional<int64_t> find(const Axis& axis) const;
  void set(const Axis& axis, int64_t value);

 private:
  [[noreturn]] static void no_value(Choice choice);
  int64_t at(Choice choice) const { return values_[static_cast<size_t>(choice)]; }

  std::array<int64_t, kChoices> values_;  // the value of each choice; kVaries: the choice has none
  std::vector<Schedule> parts_;
};

}  // namespace wl
