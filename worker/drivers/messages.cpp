#include "worker/drivers/messages.h"

#include "worker/drivers/frame.h"

namespace wl {
namespace {

// One function per message lists its fields. A Packer writes them and an Unpacker reads them, so the two directions
// always agree.
class Writing {
 public:
  void field(int64_t& v) { out_.integer(v); }
  void field(int& v) { out_.integer(v); }
  void field(uint64_t& v) { out_.integer(static_cast<int64_t>(v)); }
  void field(bool& v) { out_.integer(v); }
  void field(double& v) { out_.real(v); }
  void field(std::string& v) { out_.text(v); }
  void field(DType& v) { out_.integer(static_cast<int64_t>(v)); }
  template <typename T, typename F>
  void list(std::vector<T>& items, size_t, F&& each) {
    out_.integer(static_cast<int64_t>(items.size()));
    for (T& item : items) each(item);
  }
  std::string take() { return out_.take(); }

 private:
  Packer out_;
};

class Reading {
 public:
  explicit Reading(const std::string& bytes) : in_(bytes) {}
  void field(int64_t& v) { v = in_.integer(); }
  void field(int& v) { v = static_cast<int>(in_.integer()); }
  void field(uint64_t& v) { v = static_cast<uint64_t>(in_.integer()); }
  void field(bool& v) { v = in_.integer() != 0; }
  void field(double& v) { v = in_.real(); }
  void field(std::string& v) { v = in_.text(); }
  void field(DType& v) {
    const int64_t row = in_.integer();
    known_ = known_ && row >= 0 && row < kDTypeCount;
    v = known_ ? static_cast<DType>(row) : DType::f32;
  }
  template <typename T, typename F>
  void list(std::vector<T>& items, size_t item_bytes, F&& each) {
    items.resize(static_cast<size_t>(in_.count(item_bytes)));
    for (T& item : items) each(item);
  }
  bool complete() const { return known_ && in_.complete(); }

 private:
  Unpacker in_;
  bool known_ = true;
};

template <typename V>
void walk(V& v, Fill& m) {
  v.field(m.mean);
  v.field(m.stddev);
  v.field(m.low);
  v.field(m.high);
  v.list(m.literal, 8, [&](double& x) { v.field(x); });
}

template <typename V>
void walk(V& v, BufferSpec& m) {
  v.field(m.name);
  v.field(m.dtype);
  v.list(m.shape, 8, [&](int64_t& x) { v.field(x); });
  v.field(m.output);
  walk(v, m.fill);
  v.field(m.stream);
}

template <typename V>
void walk(V& v, SetupCommand& m) {
  v.list(m.buffers, 72, [&](BufferSpec& x) { walk(v, x); });
  v.field(m.seed);
  v.field(m.cold);
  v.field(m.threads);
  v.field(m.cache_bytes);
  v.field(m.arena_bytes);
  v.field(m.cpu_s);
  v.field(m.trace);
  v.field(m.libraries);
}

template <typename V>
void walk(V& v, LoadCommand& m) {
  v.field(m.slot);
  v.field(m.object);
  v.field(m.entry);
  v.field(m.grid);
  v.field(m.threads);
  v.field(m.scratch_bytes);
  v.field(m.passes);
  v.field(m.work_bytes);
  v.field(m.library);
}

template <typename V>
void walk(V& v, ChainCommand& m) {
  v.field(m.slot);
  v.list(m.steps, 16, [&](ChainCommand::Step& step) {
    v.field(step.slot);
    v.list(step.arguments, 16, [&](ChainCommand::Argument& x) {
      v.field(x.buffer);
      v.field(x.offset);
    });
  });
}

template <typename V>
void walk(V& v, CheckCommand& m) {
  v.field(m.slot);
  v.field(m.thorough);
}

template <typename V>
void walk(V& v, CheckAnswer& m) {
  v.field(m.damage);
  v.list(m.unwritten, 24, [&](CheckAnswer::Unwritten& x) {
    v.field(x.buffer);
    v.field(x.elements);
    v.field(x.first);
  });
}

template <typename V>
void walk(V& v, PeekCommand& m) {
  v.list(m.places, 16, [&](PeekCommand::Place& x) {
    v.field(x.buffer);
    v.field(x.index);
  });
}

template <typename V>
void walk(V& v, PeekAnswer& m) {
  v.list(m.values, 8, [&](double& x) { v.field(x); });
}

template <typename V>
void walk(V& v, Recipe& m) {
  v.field(m.cold);
  v.field(m.min_repeats);
  v.field(m.max_repeats);
  v.field(m.budget_ns);
  v.field(m.deadline_ns);
  v.field(m.hopeless_factor);
  v.field(m.best_ns);
  v.field(m.interleave);
  v.field(m.threads);
  v.field(m.lost_factor);
}

template <typename V>
void walk(V& v, TimeCommand& m) {
  v.list(m.slots, 8, [&](int64_t& x) { v.field(x); });
  walk(v, m.recipe);
}

template <typename V>
void walk(V& v, TimeAnswer& m) {
  v.list(m.slots, 16, [&](Samples& x) {
    v.list(x.samples_ns, 8, [&](int64_t& ns) { v.field(ns); });
    v.field(x.hopeless);
    v.list(x.clocks_mhz, 4, [&](int& mhz) { v.field(mhz); });
  });
  v.field(m.damage);
}

template <typename V>
void walk(V& v, Source& m) {
  v.field(m.target);
  v.field(m.compiler);
  v.field(m.prelude);
  v.field(m.text);
  v.field(m.entry);
  v.field(m.grid);
  v.field(m.threads);
  v.field(m.scratch_bytes);
  v.field(m.load_bytes);
  v.field(m.store_bytes);
  v.field(m.passes);
  v.field(m.work_bytes);
  v.field(m.library);
}

template <typename V>
void walk(V& v, CompileCommand& m) {
  v.field(m.folder);
  v.list(m.sources, 96, [&](Source& x) { walk(v, x); });
}

template <typename V>
void walk(V& v, CodeFacts& m) {
  v.field(m.registers);
  v.field(m.spill_bytes);
  v.field(m.stack_bytes);
  v.field(m.static_shared);
  v.field(m.dynamic_shared);
  v.field(m.widest_load);
  v.field(m.narrowest_load);
  v.field(m.widest_store);
  v.field(m.narrowest_store);
  v.field(m.compare_and_swap);
  v.field(m.occupancy);
}

template <typename V>
void walk(V& v, CompileAnswer& m) {
  v.field(m.binary);
  v.list(m.kernels, 88, [&](CodeFacts& x) { walk(v, x); });
  v.field(m.seconds);
}

template <typename V>
void walk(V& v, DescribeAnswer& m) {
  v.list(m.found, 88, [&](DescribeAnswer::Found& x) {
    v.field(x.name);
    v.field(x.device.target);
    v.field(x.device.name);
    v.field(x.device.threads);
    v.field(x.device.l1_bytes);
    v.field(x.device.l2_bytes);
    v.field(x.device.l3_bytes);
    v.list(x.device.compilers, 8, [&](std::string& compiler) { v.field(compiler); });
    v.field(x.device.compiler_versions);
    v.field(x.device.details);
    v.field(x.device.libraries);
  });
  v.list(m.missing, 8, [&](std::string& line) { v.field(line); });
}

template <typename V>
void walk(V& v, CanaryAnswer& m) {
  v.field(m.compute_ns);
  v.field(m.copy_ns);
}

template <typename V>
void walk(V& v, ProgressNote& m) {
  v.field(m.slot);
  v.field(m.counter);
}

template <typename V>
void walk(V& v, LogNote& m) {
  v.field(m.text);
  v.field(m.trace);
}

template <typename Message>
std::string write(Message message) {
  Writing writing;
  walk(writing, message);
  return writing.take();
}

}  // namespace

template <typename Message>
absl::StatusOr<Message> unpack(const std::string& bytes) {
  Message message;
  Reading reading(bytes);
  walk(reading, message);
  if (!reading.complete()) return absl::DataLossError("malformed message");
  return message;
}

#define WL_MESSAGE(Message)                  \
  std::string pack(const Message& message) { \
    return write(message);                   \
  }                                          \
  template absl::StatusOr<Message> unpack<Message>(const std::string&);
WL_MESSAGE(SetupCommand)
WL_MESSAGE(LoadCommand)
WL_MESSAGE(ChainCommand)
WL_MESSAGE(CheckCommand)
WL_MESSAGE(CheckAnswer)
WL_MESSAGE(PeekCommand)
WL_MESSAGE(PeekAnswer)
WL_MESSAGE(TimeCommand)
WL_MESSAGE(TimeAnswer)
WL_MESSAGE(CanaryAnswer)
WL_MESSAGE(CompileCommand)
WL_MESSAGE(CompileAnswer)
WL_MESSAGE(DescribeAnswer)
WL_MESSAGE(ProgressNote)
WL_MESSAGE(LogNote)
#undef WL_MESSAGE

}  // namespace wl
