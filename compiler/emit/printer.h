// The one printer for all targets: it walks a kernel's body and prints loops, stretches (runs of instructions that
// print as one loop) and single instructions, in names that every prelude defines.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/emit/exchange.h"
#include "compiler/emit/rounded.h"
#include "compiler/emit/stretch.h"
#include "compiler/emit/writer.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/kernel/tile_registers.h"

namespace wl {

// The bytes of the workspace that a kernel's text needs for counters, work buffers and maps of boxes (tensor maps of
// NVIDIA's tensor memory accelerator); 0: the kernel has no workspace.
int64_t workspace_bytes(const Kernel& kernel);

class Printer {
 public:
  Printer(const Kernel& kernel, std::string entry, int lanes);
  absl::StatusOr<std::string> print();
  // After print(), on machines with lanes: the bytes of a thread's widest load from and store to device memory; 0 if
  // there is none.
  int load_bytes() const { return load_bytes_; }
  int store_bytes() const { return store_bytes_; }
  // The byte offset in a thread's scratch at which a CPU kernel records an index outside of its axis (see Source in
  // compiler/base/records.h); -1: no index can be outside.
  int64_t outside_at() const { return outside_at_; }

 private:
  // The elements that one printed copy of a stretch's body handles.
  struct Place {
    std::vector<std::string> element;  // per axis: index expression of the first element
    // On machines with lanes, `element` as a sum: a term that depends on the thread, and a constant for all threads.
    std::vector<std::string> of_thread;
    std::vector<int64_t> of_all;
    std::string suffix;           // of the names of tile variables that this copy defines
    std::string left;             // elements left along the vector axis; "": a full vector
    int copy = 0;                 // number of this copy among the unrolled copies
    std::vector<int64_t> repeat;  // unrolled stretches: repeat index per axis
  };

  void print_body(std::span<const Instr> body);
  void print_instrs(std::span<const Instr> body);
  // Prints the shapes of the tile registers if all of `body` uses them with one shape; returns whether it did so.
  bool begin_tiles(std::span<const Instr> body);
  void end_tiles();
  void print_in_tiles(const Instr& instr);
  void print_loop(const Instr& loop);
  void print_inside(const Instr& loop);  // the loop's body and end
  void print_derived(VarId source);
  void print_passes();
  void print_roles();  // the part of the copiers (threads that only copy), then that of the teams
  void print_head();
  void print_team_head();
  int64_t resident_blocks() const;
  void print_team_instr(const Instr& instr);
  void print_team_load(const Instr& instr, const Place& place);
  void print_team_store(const Instr& instr, const Place& place);
  void print_async(const Instr& instr, const Place& place);
  void print_team_cross(const Instr& instr);
  void print_team_convert(const Instr& instr);
  std::vector<std::string> registers_in(TileId tile, const Registers& registers,
                                        const std::vector<int64_t>& outermost) const;
  std::vector<std::string> exchanged(std::vector<std::string> values, const Exchange& exchange, int lane_bits);
  void permute(std::vector<std::string>& values, const std::vector<uint64_t>& listed);
  std::string packed(TileId from, const std::vector<std::string>& elements, DType dtype) const;
  std::string define_new(const std::string& value);  // prints a new constant; returns its name
  // On machines with lanes: for each bit of a thread's number in its team, the coordinates that the bit moves along.
  std::vector<Layout::Base> by_bit_of_place(const Layout& layout) const;
  // The coordinate along an axis of the first element of a register, as an expression.
  std::string coordinate(const Layout& layout, int axis, const std::vector<int64_t>& repeat,
                         int64_t* added = nullptr) const;
  // The bits of a thread's number in its team that do not change which elements the thread holds.
  int64_t replicated(const Layout& layout) const;
  // How many elements of a vector one access may move, so that it is aligned for all values of the variables.
  int access_width(const Slice& slice, const Tile& tile, bool masked) const;
  bool whole_vectors(const SliceGuard& guard, const Tile& tile) const;
  static const char* load_name(const Instr& load);
  std::string read_one(const std::string& address, const Instr& load) const;
  void print_stretch(const Stretch& stretch);
  void print_unrolled(const Stretch& stretch);
  void print_looped(const Stretch& stretch);
  void print_steps(const Stretch& stretch, int axis, const std::vector<std::string>& outer);
  // Calls the print function that the instruction's row in instrs.def names. Instructions that print alone ignore the
  // place.
  void print_instr(const Instr& instr, const Place& place);
  void print_call(const Instr& instr, const Place& place);
  void print_misplaced(const Instr& instr, const Place&);
  void print_fill(const Instr& instr, const Place&);
  void print_cross(const Instr& instr, const Place&);
  void print_convert(const Instr& instr, const Place&);
  void print_iota(const Instr& instr, const Place& place);
  void print_words(const Instr& instr, const Place& place);
  void print_words_across(const Instr& instr, const Place& place);
  void print_blocks(const Instr& instr, const Place& place, const char* function, int64_t gap);
  void print_join(const Instr& instr, const Place& place);
  void print_pack(const Instr& instr, const Place& place);
  void add_fragment(TileId tile, const Layout& fragment, int64_t row, int64_t column,
                    std::vector<std::string>& to) const;
  void print_view(const Instr& instr, const Place& place);
  void print_part(const Instr& instr, const Place& place);
  void print_dot(const Instr& instr, const Place& place);
  void print_mma(const Instr& instr, const Place&);
  void print_shared_factor(const Instr& instr);
  void print_shared_factor_mma(const Instr& instr);
  void print_maps();
  void print_box(const Instr& instr, const Place&);
  void print_barrier(const Instr&, const Place&);
  std::string barrier() const;  // the text of a barrier of all teams
  void print_gather(const Instr& instr, const Place& place);
  std::string call_field(std::string_view field, const Instr& instr, const Place& place);
  // The name of the variable that an instruction defines at a place.
  std::string result_name(const Instr& instr, const Place& place) const;
  void print_map(const Instr& instr, const Place& place);
  void print_fold(const Instr& instr, const Place& place);
  void print_load(const Instr& instr, const Place& place);
  bool rows_share(const std::vector<SliceGuard>& guards, const Tile& tile) const;
  std::string range_of(const std::string& low, const std::string& high);
  void print_guarded(const Instr& instr, const Place& place, const std::string& name);
  void print_store(const Instr& instr, const Place& place);

  // The variable that holds `tile` at a place of a stretch; if the tile has one lane and `lanes` is greater, a vector
  // with that value in all lanes.
  std::string value_of(TileId tile, const Place& place, int lanes);
  std::string element_name(TileId tile, const std::vector<int64_t>& repeat) const;
  // An index at a place: `offset` plus, for each axis, the place's element index times the stride.
  std::string index(const Affine& offset, const std::vector<int64_t>& strides, const Place& place) const;
  std::string address(const Slice& slice, const Place& place) const;
  // The condition that a store's guards make; "" if there are no guards.
  std::string condition(const Instr& store, const Place& place) const;
  void define(TileId tile, const std::string& name, const std::string& value);
  std::string extent(const Tile& tile, int axis) const;
  bool static_extent(const Tile& tile, int axis) const;
  bool aligned(const Slice& slice, int axis) const;
  int lanes_of(TileId tile) const { return kernel_.tiles[tile].layout.lanes(); }
  const Tile& tile_of(TileId tile) const { return kernel_.tiles[tile]; }
  void fail(std::string message);
  // The free functions of writer.h, with the number of lanes of the vector types that have names at this point.
  int named() const { return kernel_.wave > 0 ? width_ : 0; }
  std::string spell_type(DType dtype, int lanes) const { return wl::spell_type(dtype, lanes, named()); }
  std::string spell_memory(DType dtype, int lanes) const { return wl::spell_memory(dtype, lanes, named()); }
  std::string spell_load(DType dtype, int lanes, std::string bits) const {
    return wl::spell_load(dtype, lanes, std::move(bits), named());
  }
  std::string spell_store(DType dtype, int lanes, std::string value) const {
    return wl::spell_store(dtype, lanes, std::move(value), named());
  }
  // A tile's value at a place in its memory representation.
  std::string bits_of(TileId tile, const Place& place) {
    const int lanes = lanes_of(tile);
    std::string value = value_of(tile, place, lanes);
    return rounded_tiles_.contains(tile) ? cat("wl_exact_bf16(", value, ")")
                                         : spell_store(tile_of(tile).dtype, lanes, std::move(value));
  }
  std::string spell_op(const ExprNode& node, DType from, int lanes, std::span<const std::string> operands) const {
    return wl::spell_op(node, from, lanes, operands, named());
  }

  const Kernel& kernel_;
  std::string entry_;
  int lanes_;
  Writer out_;
  std::set<TileId> register_tiles_, rounded_tiles_;
  ResidentTiles in_tile_registers_;
  SharedFactors shared_factors_;  // factors of matrix instructions that stay in shared memory
  struct SharedFactorPlace {
    std::string name;      // of the variable that says where the factor begins in shared memory
    bool along_k = false;  // the factor's elements are contiguous along k
  };
  std::map<TileId, SharedFactorPlace> shared_factor_places_;
  bool tiles_are_shaped_ = false;
  Role role_ = Role::kTeams;                     // whose part of the body is being printed
  bool copying_ = false;                         // whether this is inside a loop that copiers run
  const Instr* arrival_ = nullptr;               // the arrive_copied of that loop, which counts its copies
  std::map<BufferId, int> map_of_;               // the map of the boxes that are copied to a buffer
  std::vector<std::set<std::string>> declared_;  // names of each open scope
  std::set<TileId> defined_here_;                // tiles that the current stretch defines
  std::map<std::string, std::string> ranges_;    // ranges of lanes: text -> name
  int width_;                                    // lanes of the vector types that have names at this point
  int temporary_ = 0;
  int load_bytes_ = 0, store_bytes_ = 0;
  int64_t outside_at_ = -1;
  absl::Status status_;
};

}  // namespace wl
