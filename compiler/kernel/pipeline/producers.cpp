#include "compiler/kernel/pipeline/producers.h"

#include <algorithm>

#include "compiler/kernel/pipeline/rewrite.h"
#include "compiler/kernel/shared_access.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

class Parts {
 public:
  Parts(const Kernel& kernel, const Instr& loop, const Pipeline& how) : kernel_(kernel), loop_(loop), how_(how) {}

  absl::StatusOr<Producers> take() {
    WL_RETURN_IF_ERROR(slice());
    for (size_t i = 0; i < loop_.body.size(); ++i)
      if (!in_[i]) out_.uses.push_back(loop_.body[i]);
    WL_RETURN_IF_ERROR(check_producers());
    WL_RETURN_IF_ERROR(check_uses());
    WL_RETURN_IF_ERROR(divide());
    return std::move(out_);
  }

 private:
  const Pipeline::Ring* ring_of(BufferId buffer) const {
    const auto ring = std::find_if(how_.rings.begin(), how_.rings.end(),
                                   [buffer](const Pipeline::Ring& r) { return r.buffer == buffer; });
    return ring == how_.rings.end() ? nullptr : &*ring;
  }
  bool fills(const Instr& instr) const { return info(instr.op).stores() && ring_of(instr.slice.buffer) != nullptr; }
  absl::Status refuse(const Instr& instr, const char* why) const {
    return invalid("kernel ", kernel_.name, " is not pipelined: ", why, ": ", print(kernel_, instr));
  }

  // Marks in `in_` the producers: goes backwards from the stores that fill the buffers to the instructions that compute
  // what is stored.
  absl::Status slice() {
    const std::vector<Instr>& body = loop_.body;
    in_.assign(body.size(), false);
    std::set<TileId> needed;
    for (size_t i = body.size(); i-- > 0;) {
      const Instr& instr = body[i];
      in_[i] = fills(instr) || needed.contains(instr.result);
      if (!in_[i]) continue;
      if (instr.result >= 0) {
        out_.tiles.insert(instr.result);
        if (info(instr.op).result == InstrResult::kDefines) needed.erase(instr.result);
      }
      needed.insert(instr.args.begin(), instr.args.end());
    }
    // Tiles that producers use, and that no earlier producer of the body defines, must come from before the loop, not
    // from an earlier iteration.
    absl::Status status;
    each_instr(body, [&](const Instr& instr) {
      if (instr.result >= 0 && needed.contains(instr.result)) status = refuse(instr, "a value of an earlier iteration");
    });
    return status;
  }

  absl::Status check_producers() const {
    std::set<BufferId> stored;
    each_instr(out_.uses, [&](const Instr& instr) {
      if (info(instr.op).stores()) stored.insert(instr.slice.buffer);
    });
    for (size_t i = 0; i < loop_.body.size(); ++i) {
      const Instr& instr = loop_.body[i];
      if (!in_[i]) continue;
      const InstrInfo& row = info(instr.op);
      if (instr.op == InstrOp::kLoop || row.order != Order::kNoOrder || goes_through_memory(instr))
        return refuse(instr, "it cannot run ahead");
      if (!row.loads()) continue;
      const bool written = std::any_of(stored.begin(), stored.end(), [&](BufferId buffer) {
        return buffer == instr.slice.buffer || kernel_.overlap(buffer, instr.slice.buffer);
      });
      if (written || ring_of(instr.slice.buffer) != nullptr) return refuse(instr, "the loop stores what it loads");
    }
    return absl::OkStatus();
  }

  // Checks that the instructions other than producers read the buffers only after they are filled, and use no tile
  // that producers compute.
  absl::Status check_uses() {
    absl::Status status;
    std::set<BufferId> filled;
    for (size_t i = 0; i < loop_.body.size(); ++i) {
      if (in_[i]) {
        if (!fills(loop_.body[i])) continue;
        if (read_.contains(loop_.body[i].slice.buffer)) return refuse(loop_.body[i], "it is read before it is filled");
        filled.insert(loop_.body[i].slice.buffer);
        continue;
      }
      const std::vector<Instr> one = {loop_.body[i]};
      each_instr(one, [&](const Instr& instr) {
        const auto taken = [&](TileId tile) { return out_.tiles.contains(tile); };
        if (taken(instr.result) ||
            (info(instr.op).reads_arguments() && std::any_of(instr.args.begin(), instr.args.end(), taken)))
          status = refuse(instr, "it uses what only the buffer should get");
        if (ring_of(instr.slice.buffer) == nullptr && ring_of(instr.into.buffer) == nullptr) return;
        if (!info(instr.op).loads() || info(instr.op).is_async_copy())
          status = refuse(instr, "only stores of the loop itself may fill the buffer");
        if (!filled.contains(instr.slice.buffer)) status = refuse(instr, "it is read before it is filled");
        read_.insert(instr.slice.buffer);
        note_reader(instr);
      });
    }
    return status;
  }

  void note_reader(const Instr& reader) {
    for (size_t i = 0; i < loop_.body.size(); ++i)
      if (in_[i] && fills(loop_.body[i]) && loop_.body[i].slice.buffer == reader.slice.buffer)
        out_.own = out_.own && !info(reader.op).is_indexed() && accesses_own(kernel_, loop_.body[i], reader);
  }

  // Returns how often the producers name a tile as an argument.
  int64_t readers(TileId tile) const {
    int64_t n = 0;
    for (size_t i = 0; i < loop_.body.size(); ++i)
      n += in_[i] ? std::count(loop_.body[i].args.begin(), loop_.body[i].args.end(), tile) : 0;
    return n;
  }

  absl::Status divide() {
    std::set<const Instr*> joined;  // the loads and stores that asynchronous copies replace
    for (size_t i = 0; i < loop_.body.size(); ++i) {
      const Instr& store = loop_.body[i];
      if (!in_[i] || !fills(store) || !ring_of(store.slice.buffer)->copied) continue;
      const Instr* load = nullptr;
      for (size_t j = 0; j < i; ++j)
        if (in_[j] && loop_.body[j].result == store.args[0]) load = &loop_.body[j];
      if (load == nullptr || load->op != InstrOp::kLoad || !load->args.empty() || load->value != 0 ||
          !store.guards.empty() || readers(load->result) != 1)
        return refuse(store, "it does not store what was loaded, as it is");
      Instr copy;
      copy.op = how_.alongside && ring_of(store.slice.buffer)->boxes ? InstrOp::kBoxLoad : InstrOp::kAsyncLoad;
      copy.args = store.args;
      copy.slice = load->slice;
      copy.into = store.slice;
      copy.guards = load->guards;
      out_.copies.push_back(std::move(copy));
      joined.insert(load);
      joined.insert(&store);
    }
    for (size_t i = 0; i < loop_.body.size(); ++i) {
      const Instr& instr = loop_.body[i];
      if (in_[i] && !joined.contains(&instr)) (fills(instr) ? out_.stores : out_.loads).push_back(instr);
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  const Instr& loop_;
  const Pipeline& how_;
  std::vector<bool> in_;  // for each instruction of the loop's body: whether it is a producer
  std::set<BufferId> read_;
  Producers out_;
};

}  // namespace

absl::StatusOr<Producers> producers_of(const Kernel& kernel, const Instr& loop, const Pipeline& how) {
  return Parts(kernel, loop, how).take();
}

}  // namespace wl
