// Matrix products for the libraries of GPUs, in the form of compiler/base/matmul.h. These libraries store matrices
// column by column: the elements of a column are contiguous. So the loop along which the result is contiguous is the
// loop over its rows for the library.
#include "compiler/base/matmul.h"

#include <algorithm>

#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "compiler/library/rows.h"

namespace wl {
namespace {

class Matmul {
 public:
  Matmul(const Graph& group, const Domain& domain, const Product& product)
      : group_(group), domain_(domain), product_(product) {}

  std::optional<MatmulCall> call() {
    std::vector<AtomId> outer = domain_.batch;
    outer.insert(outer.end(), domain_.m.begin(), domain_.m.end() - 1);
    outer.insert(outer.end(), domain_.n.begin(), domain_.n.end() - 1);
    if (outer.size() > 1 || domain_.reduced.size() != 1 || product_.convolution) return std::nullopt;
    batch_ = outer.empty() ? -1 : outer[0];
    depth_ = domain_.reduced[0];
    // For the library, the loop over rows is the one along which the result is contiguous: the domain's loop over
    // columns or, if the result is not contiguous along that loop, the domain's loop over rows.
    const bool along_columns = product_.result.strides[domain_.n.back()] == 1 || extent(domain_.n.back()) == 1;
    rows_ = along_columns ? domain_.n.back() : domain_.m.back();
    columns_ = along_columns ? domain_.m.back() : domain_.n.back();
    const ProductTensor &a = along_columns ? product_.right : product_.left,
                        &b = along_columns ? product_.left : product_.right;
    call_.factors = product_.factors;
    call_.result = product_.type;
    call_.tf32 = group_.nodes[domain_.contract].tf32;
    call_.batch = extent(batch_);
    const bool fits = factor(a, rows_, depth_, call_.a, call_.a_transposed) &&
                      factor(b, depth_, columns_, call_.b, call_.b_transposed) &&
                      matrix(product_.result, rows_, columns_, call_.d) && (batch_ < 0 || call_.d.step > 0);
    return fits && all_steps() ? std::optional(call_) : std::nullopt;
  }

 private:
  int64_t extent(AtomId a) const { return a < 0 ? 1 : domain_.atoms[a].extent; }
  static int64_t stride(const ProductTensor& tensor, AtomId a) { return a < 0 ? 0 : tensor.strides[a]; }

  int argument(const ProductTensor& tensor) const {
    const std::vector<NodeId> inputs = group_.inputs();
    if (tensor.input < 0) return static_cast<int>(inputs.size());
    return static_cast<int>(std::find(inputs.begin(), inputs.end(), tensor.input) - inputs.begin());
  }

  // Describes the tensor as a matrix whose columns run along the loop `down` and whose rows run along the loop
  // `across`. Returns false if the library cannot read such a matrix, for example because the tensor is not contiguous
  // along `down`.
  bool matrix(const ProductTensor& tensor, AtomId down, AtomId across, MatmulMatrix& out) const {
    out = {argument(tensor), tensor.offset, extent(down), extent(across), 0, stride(tensor, batch_)};
    if (out.rows > 1 && stride(tensor, down) != 1) return false;
    out.leading = out.columns > 1 ? stride(tensor, across) : out.rows;
    return out.leading >= out.rows && out.offset >= 0 && out.step >= 0;
  }

  bool factor(const ProductTensor& tensor, AtomId down, AtomId across, MatmulMatrix& out, bool& transposed) const {
    transposed = !matrix(tensor, down, across, out);
    return !transposed || matrix(tensor, across, down, out);
  }

  // Translates the steps after the product. They must be, in this order: a constant factor, additions of at most one
  // matrix and one column (these two in any order), and a function. Returns false if they are anything else.
  bool all_steps() {
    for (const PostStep& step : product_.post)
      if (!(step.activation ? activation(*step.activation) : addition(step))) return false;
    return true;
  }

  bool activation(const Activated& f) {
    if (call_.function != MatmulFunction::kNone) return f.what == Activation::kLinear && f.alpha == 1 && f.beta == 0;
    if (f.what == Activation::kLinear && f.beta == 0) {
      const bool first = !call_.c && !call_.bias;
      if (first) call_.alpha *= f.alpha;
      return first || f.alpha == 1;
    }
    if (f.what == Activation::kRelu && f.alpha == 0) call_.function = MatmulFunction::kRelu;
    if (f.what == Activation::kGeluTanh) call_.function = MatmulFunction::kGeluTanh;
    return call_.function != MatmulFunction::kNone;
  }

  bool addition(const PostStep& step) {
    if (step.op != Op::add || call_.function != MatmulFunction::kNone) return false;
    if (group_.nodes[step.tensor.input].dtype != product_.type) return false;
    MatmulMatrix added;
    const bool is_column =
        stride(step.tensor, columns_) == 0 && stride(step.tensor, batch_) == 0 && extent(columns_) > 1;
    if (is_column) {
      if (call_.bias || extent(rows_) == 1 || stride(step.tensor, rows_) != 1) return false;
      call_.bias = MatmulMatrix{argument(step.tensor), step.tensor.offset, extent(rows_), 1, extent(rows_), 0};
      return true;
    }
    if (call_.c || !matrix(step.tensor, rows_, columns_, added)) return false;
    call_.c = added;
    return true;
  }

  const Graph& group_;
  const Domain& domain_;
  const Product& product_;
  AtomId batch_ = -1, depth_ = -1, rows_ = -1, columns_ = -1;
  MatmulCall call_;
};

}  // namespace

std::optional<LibraryGroup> matmul_group(const Graph& group, const Domain& domain, const Machine& machine) {
  std::optional<Product> product = product_of(group, domain, ProductTypes::kHalves);
  if (!product || !Matmul(group, domain, *product).call()) return std::nullopt;
  LibraryGroup library{*std::move(product), {}};
  Axis algorithm(kAlgorithm, {});
  for (int i = 0; i < kMostAlgorithms; ++i) algorithm.values.push_back(i);
  library.space.kind = machine.library->name;
  library.space.axes = {algorithm};
  library.space.legal = [](const Schedule&) { return true; };
  library.space = finished(std::move(library.space), machine);
  return library;
}

absl::StatusOr<Source> matmul_source(const Graph& group, const Domain& domain, const LibraryGroup& library,
                                     const Schedule& schedule, const Machine& machine) {
  std::optional<MatmulCall> call = Matmul(group, domain, library.product).call();
  if (!call) return invalid("the library has no kernel for the group");
  call->algorithm = static_cast<int>(schedule[kAlgorithm]);
  Source source;
  source.target = std::string(machine.target->name);
  source.compiler = std::string(machine.library->name);
  source.text = matmul_text(*call);
  source.library = std::string(machine.library->name);
  source.work_bytes = kCounterBytes + kMatmulWorkBytes;
  source.entry = cat(
      "wl_", Encoder("library", 1).text(source.text).text(source.library).text(graph_hash(group)).hash().substr(0, 16));
  return source;
}

}  // namespace wl
