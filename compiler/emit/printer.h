// The printer for all targets. It walks over a kernel's body and prints loops, stretches (consecutive instructions that
// are printed as one loop) and single instructions, in names that every prelude defines.
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

// Returns how many bytes of workspace the kernel's text needs for counters, work buffers and tensor maps (which
// describe the boxes that NVIDIA's tensor memory accelerator copies); 0: the kernel has no workspace.
int64_t workspace_bytes(const Kernel& kernel);

class Printer {
 public:
  Printer(const Kernel& kernel, std::string entry, int lanes, const NodeListing& listing);
  absl::StatusOr<std::string> print();
  // Returns `text`, which print() returned, with comments that name nodes of the listing. Without a listing, `text`
  // stays as it is.
  std::string with_notes(std::string_view text) const { return out_.with_notes(text); }
  // After print(), for machines with lanes: load_bytes() returns the size in bytes of a thread's widest load from
  // device memory, and store_bytes() that of its widest store to device memory; 0: there is none.
  int load_bytes() const { return load_bytes_; }
  int store_bytes() const { return store_bytes_; }
  // Returns the byte offset in a thread's scratch at which a CPU kernel records an index outside of its axis (see
  // Source in compiler/base/records.h); -1: no index can be outside.
  int64_t outside_at() const { return outside_at_; }

 private:
  // The elements that one copy of a stretch's body computes; an unrolled loop has several copies.
  struct Place {
    std::vector<std::string> element;  // for each axis: index expression of the first element
    // On machines with lanes, `element` as a sum of two terms: one depends on the thread, the other is the same for all
    // threads.
    std::vector<std::string> of_thread;
    std::vector<int64_t> of_all;
    std::string suffix;           // suffix of the names of tile variables that this copy defines
    std::string left;             // number of elements left along the vector axis; "": a full vector
    int copy = 0;                 // number of this copy among the unrolled copies
    std::vector<int64_t> repeat;  // for unrolled stretches: index of the repeat on each axis
  };

  void print_body(std::span<const Instr> body);
  void print_instrs(std::span<const Instr> body);
  // If all products of `body` need the same shapes of the CPU's tile registers (AMX), prints code that sets these
  // shapes. Returns whether it did so.
  bool begin_tiles(std::span<const Instr> body);
  void end_tiles();
  void print_in_tiles(const Instr& instr);
  void print_loop(const Instr& loop);
  void print_inside(const Instr& loop);  // prints the body and the end of a loop
  void print_derived(VarId source);
  void print_passes();
  void print_roles();  // prints the part of the copiers (threads that only copy), then that of the teams
  void print_listing();
  void note(NodeOrigin origin);
  void note_loop(const Instr& loop);
  void print_head();
  void print_team_head();
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
  std::string define_new(const std::string& value);  // prints `const auto NAME = value;` with a new name; returns it
  // On machines with lanes: for each bit of a thread's number in its team, the coordinates that depend on the bit.
  std::vector<Layout::Base> by_bit_of_place(const Layout& layout) const;
  // Returns an expression for the coordinate along an axis of the first element of a register.
  std::string coordinate(const Layout& layout, int axis, const std::vector<int64_t>& repeat,
                         int64_t* added = nullptr) const;
  // Returns a mask of the bits of a thread's number in its team on which the elements that the thread holds do not
  // depend.
  int64_t replicated(const Layout& layout) const;
  // Returns how many elements of a vector one access may move, such that it is aligned for all values of the variables.
  int access_width(const Slice& slice, const Tile& tile, bool masked) const;
  bool whole_vectors(const SliceGuard& guard, const Tile& tile) const;
  static const char* load_name(const Instr& load);
  std::string read_one(const std::string& address, const Instr& load) const;
  void print_stretch(const Stretch& stretch);
  void print_unrolled(const Stretch& stretch);
  void print_looped(const Stretch& stretch);
  void print_steps(const Stretch& stretch, int axis, const std::vector<std::string>& outer);
  // Calls the print function that the instruction's row in instrs.def names. Instructions that are printed outside of
  // stretches ignore `place`.
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
  std::string barrier() const;  // returns the text of a barrier of all teams
  void print_gather(const Instr& instr, const Place& place);
  std::string call_field(std::string_view field, const Instr& instr, const Place& place);
  // Returns the name of the variable that an instruction defines at a place of a stretch.
  std::string result_name(const Instr& instr, const Place& place) const;
  void print_map(const Instr& instr, const Place& place);
  void print_fold(const Instr& instr, const Place& place);
  void print_load(const Instr& instr, const Place& place);
  bool rows_share(const std::vector<SliceGuard>& guards, const Tile& tile) const;
  std::string range_of(const std::string& low, const std::string& high);
  void print_guarded(const Instr& instr, const Place& place, const std::string& name);
  void print_store(const Instr& instr, const Place& place);

  // Returns the variable that holds `tile` at a place of a stretch. If the tile has one lane and `lanes` is greater,
  // returns a vector with that value in all lanes.
  std::string value_of(TileId tile, const Place& place, int lanes);
  std::string element_name(TileId tile, const std::vector<int64_t>& repeat) const;
  // Returns an index at a place of a stretch: `offset` plus, for each axis, the place's element index times the stride.
  std::string index(const Affine& offset, const std::vector<int64_t>& strides, const Place& place) const;
  std::string address(const Slice& slice, const Place& place) const;
  // Returns the condition under which a store's guards allow it; "" if there are no guards.
  std::string condition(const Instr& store, const Place& place) const;
  void define(TileId tile, const std::string& name, const std::string& value);
  std::string extent(const Tile& tile, int axis) const;
  bool static_extent(const Tile& tile, int axis) const;
  bool aligned(const Slice& slice, int axis) const;
  int lanes_of(TileId tile) const { return kernel_.tiles[tile].layout.lanes(); }
  const Tile& tile_of(TileId tile) const { return kernel_.tiles[tile]; }
  void fail(std::string message);
  // The spell_ functions call those of the same name in writer.h, with named(): the number of lanes of the vector types
  // that have short names at this point of the text.
  int named() const { return kernel_.wave > 0 ? width_ : 0; }
  std::string spell_type(DType dtype, int lanes) const { return wl::spell_type(dtype, lanes, named()); }
  std::string spell_memory(DType dtype, int lanes) const { return wl::spell_memory(dtype, lanes, named()); }
  std::string spell_load(DType dtype, int lanes, std::string bits) const {
    return wl::spell_load(dtype, lanes, std::move(bits), named());
  }
  std::string spell_store(DType dtype, int lanes, std::string value) const {
    return wl::spell_store(dtype, lanes, std::move(value), named());
  }
  // Returns a tile's value at a place of a stretch, in the representation that its dtype has in memory.
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
  const NodeListing& listing_;
  // Tiles and expression nodes whose first definition in the text already has a comment that names a node of the graph.
  std::set<TileId> noted_tiles_;
  std::set<const ExprNode*> noted_values_;
  int lanes_;
  Writer out_;
  std::set<TileId> register_tiles_, rounded_tiles_;
  ResidentTiles in_tile_registers_;
  SharedFactors shared_factors_;  // factors that matrix instructions read from shared memory
  struct SharedFactorPlace {
    std::string name;      // variable that says where the factor begins in shared memory
    bool along_k = false;  // whether the factor's elements are contiguous along k
  };
  std::map<TileId, SharedFactorPlace> shared_factor_places_;
  bool tiles_are_shaped_ = false;
  Role role_ = Role::kTeams;        // the threads whose part of the body is being printed
  bool copying_ = false;            // whether a loop that copiers run is being printed
  const Instr* arrival_ = nullptr;  // the instruction arrive_copied that counts the copies in a loop of copiers
  std::map<BufferId, int> map_of_;  // for each buffer to which boxes are copied: the number of its tensor map
  std::vector<std::set<std::string>> declared_;  // names that are declared in each open scope
  std::set<TileId> defined_here_;                // tiles that the current stretch defines
  std::map<std::string, std::string> ranges_;    // the name of each defined range of lanes, by its text "low..high"
  int width_;                                    // lanes of vector types with short names at this point of the text
  int temporary_ = 0;
  int load_bytes_ = 0, store_bytes_ = 0;
  int64_t outside_at_ = -1;
  absl::Status status_;
};

}  // namespace wl
