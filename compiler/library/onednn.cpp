// Kernels that call oneDNN 2. Their text consists of tables for the code in compiler/target/prelude/onednn.h.
#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "compiler/library/rows.h"
#include "compiler/target/prelude/prelude.h"

namespace wl {
namespace {

// The most tensors of a call, the most axes of a tensor, and the most post operations of a call.
constexpr size_t kMostTensors = 12, kMostRank = 6, kMostPosts = 16;
// oneDNN's numbers for the roles of tensors in a call. kPostOp: the number of the first post operation; those of the
// following operations are multiples of it. kSecond: the second operand of a post operation.
constexpr int kSource = 1, kWeights = 33, kResult = 17, kPostOp = 16384, kSecond = 2;
// kPanelTags has, for each number of columns that a panel may have, oneDNN's number for the format of weights in such
// panels (docs/design/graphs.md#weights-in-panels). For these formats, the number of terms of a product's sums (the
// depth) must be a multiple of kPanelDepth.
constexpr int64_t kPanelDepth = 16;
constexpr std::pair<int64_t, int> kPanelTags[] = {{64, 502}, {32, 500}};

struct ActivationName {
  Activation what;
  int number;
};
constexpr ActivationName kActivations[] = {
    {Activation::kLinear, 0x7f},   {Activation::kRelu, 0x1f},    {Activation::kClip, 0x10},
    {Activation::kTanh, 0x2f},     {Activation::kSigmoid, 0xaf}, {Activation::kGeluErf, 0x30},
    {Activation::kGeluTanh, 0xcf}, {Activation::kSwish, 0xdf},   {Activation::kHardSwish, 0x70},
    {Activation::kElu, 0x3f},      {Activation::kExp, 0xbf},     {Activation::kAbs, 0x5f},
    {Activation::kSquare, 0x4f},
};
constexpr std::pair<Op, int> kBinaries[] = {{Op::add, 0x1fff0}, {Op::mul, 0x1fff1}, {Op::max, 0x1fff2},
                                            {Op::min, 0x1fff3}, {Op::div, 0x1fff4}, {Op::sub, 0x1fff5}};

struct Tensor {
  int argument = 0, name = 0, tag = 0;
  int64_t offset = 0;
  std::vector<int64_t> dims, strides;
};

// A loop of a product that can be divided among threads. `axis` has, for each tensor of the call, the axis that the
// loop runs along; -1: the tensor does not vary along the loop.
struct Loop {
  int64_t extent = 1, step = 1;  // number of iterations; a thread's part of the loop begins at a multiple of `step`
  std::vector<int> axis;
};

struct Call {
  std::vector<Tensor> tensors;  // the tensors in order: source, weights, result, tensors of post operations
  bool convolution = false;
  std::vector<int64_t> window[4];
  Loop rows, columns, batch;  // the loops that can be divided; the choice kDivided selects one of them
};

class Calls {
 public:
  Calls(const Graph& group, const Domain& domain, const Product& product)
      : group_(group), domain_(domain), product_(product) {}

  std::optional<Call> call() {
    Call call;
    call.convolution = product_.convolution;
    const bool possible = product_.convolution ? convolution(call) : product(call);
    if (!possible || call.tensors.size() > kMostTensors || product_.post.size() > kMostPosts) return std::nullopt;
    for (Tensor& tensor : call.tensors)
      if (tensor.dims.size() > kMostRank) return std::nullopt;
    return call;
  }

 private:
  int64_t extent(AtomId a) const { return a < 0 ? 1 : domain_.atoms[a].extent; }

  int argument(const ProductTensor& tensor) const {
    const std::vector<NodeId> inputs = group_.inputs();
    if (tensor.input < 0) return static_cast<int>(inputs.size());
    return static_cast<int>(std::find(inputs.begin(), inputs.end(), tensor.input) - inputs.begin());
  }

  // Returns the tensor with one axis for each loop of `loops`. If the tensor does not vary along a loop, its axis has
  // extent 1.
  Tensor tensor(const ProductTensor& of, int name, const std::vector<AtomId>& loops) const {
    Tensor out{argument(of), name, 0, of.offset, {}, {}};
    for (const AtomId a : loops) {
      const int64_t stride = a < 0 ? 0 : of.strides[a];
      out.dims.push_back(stride == 0 ? 1 : extent(a));
      out.strides.push_back(stride == 0 ? 1 : stride);
    }
    return out;
  }

  void add_posts(Call& call, const std::vector<AtomId>& loops) const {
    for (size_t p = 0; p < product_.post.size(); ++p)
      if (!product_.post[p].activation)
        call.tensors.push_back(tensor(product_.post[p].tensor, kPostOp * (static_cast<int>(p) + 1) | kSecond, loops));
  }

  // Returns a loop over elements of the result. It runs along `source_axis` of the source, along `weights_axis` of the
  // weights, and along `axis` of all other tensors.
  static Loop loop_of(const Call& call, int64_t extent, int source_axis, int weights_axis, int axis) {
    Loop loop{extent, 1, {source_axis, weights_axis}};
    loop.axis.resize(call.tensors.size(), axis);
    return loop;
  }

  bool product(Call& call) const {
    std::vector<AtomId> outer = domain_.batch;
    outer.insert(outer.end(), domain_.m.begin(), domain_.m.end() - 1);
    outer.insert(outer.end(), domain_.n.begin(), domain_.n.end() - 1);
    const AtomId m = domain_.m.back(), n = domain_.n.back(), k = domain_.reduced[0];
    const auto with = [&](AtomId a, AtomId b) {
      std::vector<AtomId> loops = outer;
      loops.insert(loops.end(), {a, b});
      return loops;
    };
    call.tensors = {tensor(product_.left, kSource, with(m, k)), tensor(product_.right, kWeights, with(k, n)),
                    tensor(product_.result, kResult, with(m, n))};
    add_posts(call, with(m, n));
    const int64_t panel = join_panels(call);
    const int rank = static_cast<int>(call.tensors[0].dims.size());
    call.rows = loop_of(call, extent(m), rank - 2, -1, rank - 2);
    call.columns = loop_of(call, call.tensors[2].dims.back(), -1, rank - 1, rank - 1);
    call.columns.step = std::max<int64_t>(1, panel);
    if (rank > 2) call.batch = loop_of(call, call.tensors[2].dims[0], 0, 0, 0);
    return true;
  }

  // If the weights are stored in panels, there are two loops over columns: one over the panels and one over the columns
  // of a panel. Joins them into one loop, and gives the weights oneDNN's format for panels. Returns the number of
  // columns in a panel; 0 if the weights are not in panels.
  int64_t join_panels(Call& call) const {
    if (!domain_.batch.empty() || domain_.m.size() != 1 || domain_.n.size() != 2) return 0;
    const int64_t panels = extent(domain_.n[0]), width = extent(domain_.n[1]), depth = extent(domain_.reduced[0]);
    const Tensor& weights = call.tensors[1];
    const auto* tag =
        std::find_if(std::begin(kPanelTags), std::end(kPanelTags), [&](auto& t) { return t.first == width; });
    if (tag == std::end(kPanelTags) || depth % kPanelDepth != 0) return 0;
    if (weights.strides != std::vector<int64_t>{depth * width, width, 1}) return 0;
    for (size_t t = 2; t < call.tensors.size(); ++t) {
      const Tensor& of = call.tensors[t];
      const bool still = of.dims[0] == 1 && of.dims[2] == 1;
      if (!still && (of.dims[0] != panels || of.dims[2] != width || of.strides[0] != width * of.strides[2])) return 0;
    }
    for (Tensor& of : call.tensors) {
      const int64_t outer = of.dims[0];
      of.dims.erase(of.dims.begin());
      of.strides.erase(of.strides.begin());
      if (&of != call.tensors.data()) of.dims.back() *= outer;
    }
    call.tensors[1].tag = tag->second;
    return width;
  }

  bool convolution(Call& call) const {
    const SlidingLoop &h = product_.height, &w = product_.width;
    const std::vector<AtomId> result = {product_.image, domain_.m[0], h.output, w.output};
    Tensor image = tensor(product_.right, kSource, {product_.image, product_.channel});
    image.dims.insert(image.dims.end(), {h.extent, w.extent});
    image.strides.insert(image.strides.end(), {h.image_stride, w.image_stride});
    call.tensors = {image, tensor(product_.left, kWeights, {domain_.m[0], product_.channel, h.tap, w.tap}),
                    tensor(product_.result, kResult, result)};
    // In a convolution of oneDNN, both the weights and the image vary along every loop that is summed over.
    for (const AtomId a : domain_.reduced)
      if (product_.left.strides[a] == 0 || product_.right.strides[a] == 0) return false;
    if (product_.image >= 0 && product_.right.strides[product_.image] == 0) return false;
    add_posts(call, result);
    for (const SlidingLoop& loop : {h, w}) {
      const int64_t reach = (extent(loop.tap) - 1) * loop.dilation + 1;
      const int64_t after = (extent(loop.output) - 1) * loop.stride + reach - loop.extent - loop.before;
      call.window[0].push_back(loop.stride);
      call.window[1].push_back(loop.dilation - 1);
      call.window[2].push_back(loop.before);
      call.window[3].push_back(after);
    }
    call.rows = loop_of(call, extent(domain_.m[0]), -1, 0, 1);
    if (product_.image >= 0) call.batch = loop_of(call, extent(product_.image), 0, -1, 0);
    return true;
  }

  const Graph& group_;
  const Domain& domain_;
  const Product& product_;
};

const Loop& divided_loop(const Call& call, int64_t divided) {
  return divided == kDividedBatch ? call.batch : divided == kDividedColumns ? call.columns : call.rows;
}

// A part of a call, computed by one thread while other threads compute the other parts.
struct Part {
  Call call;
  std::vector<int64_t> offsets;
};
std::vector<Part> parts_of(const Call& call, int64_t divided, int64_t threads) {
  std::vector<int64_t> offsets;
  for (const Tensor& tensor : call.tensors) offsets.push_back(tensor.offset);
  if (threads == 1) return {{call, offsets}};
  const Loop& loop = divided_loop(call, divided);
  const int64_t steps = loop.extent / loop.step;
  std::vector<Part> parts;
  for (int64_t p = 0; p < threads; ++p) {
    const int64_t begin = steps * p / threads * loop.step, end = steps * (p + 1) / threads * loop.step;
    Part part{call, offsets};
    for (size_t t = 0; t < call.tensors.size(); ++t) {
      if (loop.axis[t] < 0) continue;
      const size_t axis = static_cast<size_t>(loop.axis[t]);
      Tensor& tensor = part.call.tensors[t];
      if (tensor.dims[axis] == 1) continue;
      tensor.dims[axis] = end - begin;
      // A part begins at the first column of a panel. The panels before it contain, for each of their columns, as many
      // weights as a sum of the product has terms.
      part.offsets[t] += begin * (tensor.tag != 0 ? tensor.dims[0] : tensor.strides[axis]);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string number_list(const std::vector<int64_t>& numbers) {
  return cat("{", absl::StrJoin(numbers, ","), "}");
}

std::string post_text(const PostStep& step, int& tensor) {
  if (!step.activation) {
    for (const auto& [op, number] : kBinaries)
      if (op == step.op) return cat("{", number, ",", tensor++, ",0,0}");
    WL_CHECK(false, "no binary post operation ", name_of(step.op));
  }
  for (const ActivationName& row : kActivations)
    if (row.what == step.activation->what)
      return absl::StrFormat("{%d,-1,%.9g,%.9g}", row.number, step.activation->alpha, step.activation->beta);
  WL_CHECK(false, "an activation without a number");
}

std::string primitive_text(const Call& call, const Product& product, bool own_format) {
  std::string text = cat("{", call.convolution ? 1 : 0, ",", call.tensors.size(), ",", product.post.size(), ",\n  {");
  for (const Tensor& t : call.tensors) {
    // With `own_format`, oneDNN chooses the formats of the tensors. A tensor of a post operation that is smaller than
    // the result keeps its format, since converting it would cost more than it saves.
    const bool whole = &t - call.tensors.data() < 3 || t.dims == call.tensors[2].dims;
    append(&text, "{", t.argument, ",", t.name, ",", t.dims.size(), ",", t.tag, ",", own_format && whole ? 1 : 0, ",",
           number_list(t.dims), ",", number_list(t.strides), "},\n   ");
  }
  append(&text, "},\n  {");
  int tensor = 3;
  for (const PostStep& step : product.post) append(&text, post_text(step, tensor), ",");
  append(&text, "},\n  {");
  if (call.convolution)
    for (const auto& list : call.window) append(&text, number_list(list), ",");
  return text + "}}";
}

}  // namespace

std::optional<LibraryGroup> onednn_group(const Graph& group, const Domain& domain, const Machine& machine) {
  std::optional<Product> product = product_of(group, domain);
  if (!product) return std::nullopt;
  const std::optional<Call> call = Calls(group, domain, *product).call();
  if (!call) return std::nullopt;
  Axis threads(kThreads, {machine.threads}), divided(kDivided, {});
  for (const int64_t way : {kDividedRows, kDividedColumns, kDividedBatch}) {
    const Loop& loop = divided_loop(*call, way);
    if (loop.extent / loop.step >= machine.threads) divided.values.push_back(way);
  }
  if (divided.values.empty()) {
    threads.values = {1};
    divided.values = {kDividedRows};
  } else if (machine.threads > 1) {
    threads.values.push_back(1);
  }
  LibraryGroup library{*std::move(product), {}};
  Space& space = library.space;
  space.kind = machine.library->name;
  space.axes = {threads, divided, Axis(kOwnFormat, {0, 1})};
  space.legal = [first = divided.values[0]](const Schedule& s) { return s[kThreads] > 1 || s[kDivided] == first; };
  space = finished(std::move(space), machine);
  return library;
}

absl::StatusOr<Source> onednn_source(const Graph& group, const Domain& domain, const LibraryGroup& library,
                                     const Schedule& schedule, const Machine& machine) {
  const std::optional<Call> call = Calls(group, domain, library.product).call();
  if (!call) return invalid("the library has no kernel for the group");
  const std::vector<Part> parts = parts_of(*call, schedule[kDivided], schedule[kThreads]);
  std::vector<std::string> primitives;
  std::string blocks;
  for (const Part& part : parts) {
    const std::string text = primitive_text(part.call, library.product, schedule[kOwnFormat] != 0);
    auto at = std::find(primitives.begin(), primitives.end(), text);
    if (at == primitives.end()) at = primitives.insert(at, text);
    append(&blocks, "{", at - primitives.begin(), ",", number_list(part.offsets), "},");
  }
  std::string text =
      cat("static const wl_onednn::Primitive WL_ENTRY_primitives[] = {", absl::StrJoin(primitives, ",\n"),
          "};\nstatic const wl_onednn::Block WL_ENTRY_blocks[] = {", blocks,
          "};\nstatic wl_onednn::Kernel WL_ENTRY_kernel = {WL_ENTRY_primitives, WL_ENTRY_blocks, ", primitives.size(),
          ", ", parts.size(),
          "};\nextern \"C\" const char* WL_ENTRY_prepare() {\n"
          "  return wl_onednn::prepare(WL_ENTRY_kernel);\n}\n"
          "__attribute__((destructor)) static void WL_ENTRY_release() { wl_onednn::release(WL_ENTRY_kernel); }\n"
          "extern \"C\" void WL_ENTRY(long block, void* const* args, char*) {\n"
          "  wl_onednn::run(WL_ENTRY_kernel, block, args);\n}\n");
  Source source;
  source.target = std::string(machine.target->name);
  source.compiler = machine.gcc ? "gcc" : "clang";
  source.prelude = std::string(onednn_prelude());
  source.grid = static_cast<int64_t>(parts.size());
  source.threads = static_cast<int>(parts.size());
  source.library = std::string(machine.library->name);
  source.entry = cat("wl_", Encoder("library", 1)
                                .text(text)
                                .text(source.prelude)
                                .text(source.compiler)
                                .text(graph_hash(group))
                                .hash()
                                .substr(0, 16));
  source.text = absl::StrReplaceAll(text, {{"WL_ENTRY", source.entry}});
  return source;
}

}  // namespace wl
