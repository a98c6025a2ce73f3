// What can be chosen for a kernel: the rows of choices.def as an enumeration, so that an unknown choice does not
// compile and one name has one meaning. A Schedule maps each choice to its value: schedule[kVector].
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

// What a part of a group (a stage of a stitched group, a member of a packed one) does with a choice of its own space.
enum class InGroup : uint8_t {
  kOwn,     // each part has an axis of its own
  kShared,  // one axis for all parts
  kFixed,   // no axis: the value of the part's first seed, or what follows from other choices
};

// A row of choices.def.
struct ChoiceInfo {
  std::string_view name, type;
  std::vector<int64_t> values;     // of an axis that needs no line in a space; else empty
  InGroup stitched[2], packed[2];  // on CPUs, on GPUs
  std::string_view plan_1;
  uint32_t kinds;  // a set of bits, by position in kKernelKinds
  std::string_view meaning;
};

// The value that no axis has: of a choice that a kernel never asks for when its space lacks it.
inline constexpr int64_t kVaries = INT64_MIN;

// The column `absent` of choices.def, where walks over spaces, which ask for little else, read it without a call.
inline constexpr std::array<int64_t, kChoices> kAbsent = {
#define CHOICE(id, name, type, absent, ...) absent,
#include "compiler/schedule/choices.def"
#undef CHOICE
};

// Values of choices that have named ones.
inline constexpr int64_t kGcc = 0, kClang = 1;                                      // kCompiler
inline constexpr int64_t kKeepCostly = 0, kKeepAll = 1;                             // kKeep
inline constexpr int64_t kCopyTaps = 0, kCopyRows = 1, kCopyWhole = 2;              // kCopyImage
inline constexpr int64_t kDividedRows = 0, kDividedColumns = 1, kDividedBatch = 2;  // kDivided
inline constexpr int64_t kNoMatrix = 0;  // kMatrix; 1 + n: row n of compiler/target/matrix.def
inline constexpr int64_t kRowRecomputed = 0, kRowInShared = 1, kRowInRegisters = 2;  // kRowStorage

const ChoiceInfo& info(Choice choice);
inline std::string_view name_of(Choice choice) {
  return info(choice).name;
}
std::optional<Choice> choice_named(std::string_view name);
// How plans spell a value: a number, or its name where the choice has named values.
std::string value_text(Choice choice, int64_t value);
// Whether kernels of a kind may have the choice; `kind` is the word after "class=" in a plan.
bool belongs_to(Choice choice, std::string_view kind, bool gpu);
// The page docs/schedule.md: every choice, by kind of kernel, as Markdown.
std::string choices_page();

struct Axis;

// The values that were chosen for one kernel, or none.
class Schedule {
 public:
  Schedule() { values_.fill(kVaries); }
  // The value, or the one that choices.def gives to kernels whose space has no such axis. Aborts where that varies.
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
  // What was chosen for one stage or one member of the group, by its number; an empty schedule where nothing was.
  const Schedule& part(int number) const;
  // Access by axis: of this schedule, or of a part's.
  std::optional<int64_t> find(const Axis& axis) const;
  void set(const Axis& axis, int64_t value);

 private:
  [[noreturn]] static void no_value(Choice choice);
  int64_t at(Choice choice) const { return values_[static_cast<size_t>(choice)]; }

  std::array<int64_t, kChoices> values_;  // kVaries: not chosen
  std::vector<Schedule> parts_;
};

}  // namespace wl
