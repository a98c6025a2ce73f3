// Copies of boxes of matrices by NVIDIA's tensor memory accelerator (compiler/kernel/shared_factors.h). A box is a
// rectangular part of a matrix in device memory.
#include "compiler/base/records.h"
#include "compiler/emit/printer.h"

namespace wl {
namespace {

constexpr int64_t kMapBytes = 128;

// Returns the instructions of a kernel that load boxes. Each instruction has a tensor map, which says where its matrix
// lies in memory and how large its boxes are.
std::vector<const Instr*> mapped(const Kernel& kernel) {
  std::vector<const Instr*> out;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (instr.op == InstrOp::kBoxLoad) out.push_back(&instr);
  });
  return out;
}

// Returns the byte offset of the tensor maps in the workspace, where they follow the work buffers.
int64_t maps_at(const Kernel& kernel) {
  return kCounterBytes + (kernel.work_bytes() + kMapBytes - 1) / kMapBytes * kMapBytes;
}

}  // namespace

int64_t workspace_bytes(const Kernel& kernel) {
  const auto maps = static_cast<int64_t>(mapped(kernel).size());
  if (maps > 0) return maps_at(kernel) + kernel.grid * maps * kMapBytes;
  return kernel.work_bytes() > 0 ? kCounterBytes + kernel.work_bytes() : 0;
}

// Every block writes its own tensor maps when it runs, since the addresses of the matrices are not known before.
void Printer::print_maps() {
  const std::vector<const Instr*> loads = mapped(kernel_);
  for (size_t i = 0; i < loads.size(); ++i) {
    const Instr& load = *loads[i];
    const std::optional<MatrixBox> box = box_of(kernel_, load);
    if (!box) return fail("a copy of no box");
    map_of_.emplace(load.into.buffer, static_cast<int>(i));
    out_.line(cat("const auto map", i, " = wl_box_map<", box->rows, ", ", box->columns, ", ",
                  kernel_.buffers[load.slice.buffer].dtype == DType::bf16, ">(p", load.slice.buffer, ", workspace, ",
                  maps_at(kernel_), "L + (block*", loads.size(), "L + ", i, "L)*", kMapBytes, "L, p", load.into.buffer,
                  ", place, ", box->matrix_rows, "L, ", box->matrix_columns, "L, ", box->pitch, "L);"));
  }
  if (!loads.empty()) out_.line("wl_maps_are_made();");
}

void Printer::print_box(const Instr& instr, const Place&) {
  const std::optional<MatrixBox> box = box_of(kernel_, instr);
  if (!box || arrival_ == nullptr) return fail("a box that no phase counts");
  out_.line(cat("wl_box_load<", box->rows, ", ", box->boxes, ", ", kernel_.copiers, ">(map",
                map_of_.at(instr.into.buffer), ", place, ", spell(box->column), ", ", spell(box->row), ", p",
                instr.into.buffer, " + ", spell(instr.into.offset), ", ", address(arrival_->slice, {}), ");"));
}

}  // namespace wl
