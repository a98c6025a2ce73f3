// The one printer: walks a kernel's body and prints loops, stretches and single instructions over the names that every
// prelude defines. It does not know the target.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/emit/exchange.h"
#include "compiler/emit/rounded.h"
#include "compiler/emit/stretch.h"
#include "compiler/emit/writer.h"
#include "compiler/kernel/near.h"
#include "compiler/kernel/tile_registers.h"

namespace wl {

// The bytes of the workspace that a kernel's text takes: counters, work buffers, maps of boxes; 0: it has none.
int64_t workspace_bytes(const Kernel& kernel);

class Printer {
 public:
  Printer(const Kernel& kernel, std::string entry, int lanes);
  absl::StatusOr<std::string> print();
  // After print(), on machines with lanes: the widest access of a thread to device memory, in bytes; 0 for none.
  int load_bytes() const { return load_bytes_; }
  int store_bytes() const { return store_bytes_; }
  // Where in the scratch of a thread a CPU kernel leaves word of an index outside its axis (Source in
  // compiler/base/records.h); -1: no index can be outside.
  int64_t outside_at() const { return outside_at_; }

 private:
  // One printed copy of the body of a stretch: the elements that it handles.
  struct Place {
    std::vector<std::string> element;  // per axis: index expression of its first element
    // On machines with lanes, the same as a sum: what depends on the thread, and what does not.
    std::vector<std::string> of_thread;
    std::vector<int64_t> of_all;
    std::string suffix;           // of tile variables defined here
    std::string left;             // elements left along the vector axis; "": a full vector
    int copy = 0;                 // which of the unrolled copies
    std::vector<int64_t> repeat;  // unrolled stretches: repeat index per axis
  };

  void print_body(std::span<const Instr> body);
  void print_instrs(std::span<const Instr> body);
  // Shapes the tile registers for a body, where they have one shape in all of it; returns whether it did.
  bool begin_tiles(std::span<const Instr> body);
  void end_tiles();
  void print_in_tiles(const Instr& instr);
  void print_loop(const Instr& loop);
  void print_inside(const Instr& loop);  // its body and its end
  void print_derived(VarId source);
  void print_passes();
  void print_roles();  // of one pass
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
  std::string define_new(const std::string& value);  // returns the name of a new constant
  // On machines with lanes: what each bit of the number of a thread in its team moves along.
  std::vector<Layout::Base> by_bit_of_place(const Layout& layout) const;
  // The coordinate along an axis of the first element of a register, as an expression.
  std::string coordinate(const Layout& layout, int axis, const std::vector<int64_t>& repeat,
                         int64_t* added = nullptr) const;
  // The bits of the number of a thread in its team that do not change which elements it holds.
  int64_t replicated(const Layout& layout) const;
  // How many elements of a vector one access may move: they are aligned for all values of the variables.
  int access_width(const Slice& slice, const Tile& tile, bool masked) const;
  bool whole_vectors(const SliceGuard& guard, const Tile& tile) const;
  static const char* load_name(const Instr& load);
  std::string read_one(const std::string& address, const Instr& load) const;
  void print_stretch(const Stretch& stretch);
  void print_unrolled(const Stretch& stretch);
  void print_looped(const Stretch& stretch);
  void print_steps(const Stretch& stretch, int axis, const std::vector<std::string>& outer);
  // Calls the function that the row of the instruction names. Instructions that print alone ignore the place.
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
  void print_near_factor(const Instr& instr);
  void print_near_mma(const Instr& instr);
  void print_maps();
  void print_box(const Instr& instr, const Place&);
  void print_barrier(const Instr&, const Place&);
  std::string barrier() const;  // of the teams
  void print_gather(const Instr& instr, const Place& place);
  std::string call_field(std::string_view field, const Instr& instr, const Place& place);
  // The variable that an instruction defines at a place.
  std::string result_name(const Instr& instr, const Place& place) const;
  void print_map(const Instr& instr, const Place& place);
  void print_fold(const Instr& instr, const Place& place);
  void print_load(const Instr& instr, const Place& place);
  bool rows_share(const std::vector<SliceGuard>& guards, const Tile& tile) const;
  std::string range_of(const std::string& low, const std::string& high);
  void print_guarded(const Instr& instr, const Place& place, const std::string& name);
  void print_store(const Instr& instr, const Place& place);

  // Name of the variable holding `tile` at a place of a stretch; splat to the stretch's lanes when `lanes` asks for
  // more.
  std::string value_of(TileId tile, const Place& place, int lanes);
  std::string element_name(TileId tile, const std::vector<int64_t>& repeat) const;
  // An index at a place: `offset` and the elements before it, each times its stride.
  std::string index(const Affine& offset, const std::vector<int64_t>& strides, const Place& place) const;
  std::string address(const Slice& slice, const Place& place) const;
  // What a store's guards ask for; "" when nothing.
  std::string condition(const Instr& store, const Place& place) const;
  void define(TileId tile, const std::string& name, const std::string& value);
  std::string extent(const Tile& tile, int axis) const;
  bool static_extent(const Tile& tile, int axis) const;
  bool aligned(const Slice& slice, int axis) const;
  int lanes_of(TileId tile) const { return kernel_.tiles[tile].layout.lanes(); }
  const Tile& tile_of(TileId tile) const { return kernel_.tiles[tile]; }
  void fail(std::string message);
  // As the free functions, with vectors named as they are here.
  int named() const { return kernel_.wave > 0 ? width_ : 0; }
  std::string spell_type(DType dtype, int lanes) const { return wl::spell_type(dtype, lanes, named()); }
  std::string spell_memory(DType dtype, int lanes) const { return wl::spell_memory(dtype, lanes, named()); }
  std::string spell_load(DType dtype, int lanes, std::string bits) const {
    return wl::spell_load(dtype, lanes, std::move(bits), named());
  }
  std::string spell_store(DType dtype, int lanes, std::string value) const {
    return wl::spell_store(dtype, lanes, std::move(value), named());
  }
  // The bits of a tile's value as memory has them.
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
  HeldTiles in_tile_registers_;
  NearFactors near_;
  struct NearPlace {
    std::string name;  // of where the factor begins
    bool along_k = false;
  };
  std::map<TileId, NearPlace> near_places_;
  bool tiles_are_shaped_ = false;
  Role role_ = Role::kTeams;                     // whose part of the body is printed
  bool copying_ = false;                         // inside a loop that copiers run
  const Instr* arrival_ = nullptr;               // at the end of such a loop: of what it copies
  std::map<BufferId, int> map_of_;               // of boxes that are copied there
  std::vector<std::set<std::string>> declared_;  // scopes
  std::set<TileId> defined_here_;                // tiles the current stretch defines
  std::map<std::string, std::string> ranges_;    // of lanes: text -> name
  int width_;                                    // of what vectors are called here
  int temporary_ = 0;
  int load_bytes_ = 0, store_bytes_ = 0;
  int64_t outside_at_ = -1;
  absl::Status status_;
};

}  // namespace wl
