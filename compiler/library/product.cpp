#include "compiler/library/product.h"

#include <algorithm>

namespace wl {
namespace {

bool is_zero(const std::vector<int64_t>& strides, const std::vector<AtomId>& atoms) {
  return std::all_of(atoms.begin(), atoms.end(), [&](AtomId a) { return strides[a] == 0; });
}

// Finds the operations between the contraction and the result of a group, as the steps that kernel libraries can apply
// to a product. Finds nothing if libraries cannot apply one of the operations.
class Epilogue {
 public:
  // `narrow`: the dtype that values between the contraction and the result may have besides f32.
  Epilogue(const Graph& group, const Domain& domain, DType narrow) : group_(group), domain_(domain), narrow_(narrow) {}

  std::optional<std::vector<PostStep>> steps() {
    if (!find_cuts()) return std::nullopt;
    std::vector<PostStep> steps;
    for (size_t at = 0; at + 1 < cuts_.size();) {
      const size_t next = step_from(at, steps);
      if (next == at) return std::nullopt;
      at = next;
    }
    return steps;
  }

 private:
  // Finds the cuts: the values, in their order of computation, that lie on every path from the contraction to the
  // result.
  bool find_cuts() {
    const NodeId result = domain_.stores[0].source;
    std::vector<NodeId> last_use(group_.nodes.size(), -1);
    std::vector<bool> depends(group_.nodes.size(), false);
    depends[domain_.contract] = true;
    for (NodeId id = domain_.contract + 1; id <= result; ++id) {
      if (domain_.operands[id].empty()) continue;
      if (class_of(group_.nodes[id].op) != OpClass::kElementwise) return false;
      for (const Domain::Operand& operand : domain_.operands[id]) {
        if (operand.source < 0 || !depends[operand.source]) continue;
        depends[id] = true;
        last_use[operand.source] = id;
      }
    }
    if (!depends[result]) return false;
    NodeId open_until = -1;  // the last node that reads a value which was computed before node `id`
    NodeId before = -1;
    for (NodeId id = domain_.contract; id <= result; ++id) {
      if (!depends[id]) continue;
      if (before >= 0) open_until = std::max(open_until, last_use[before]);
      if (open_until <= id) cuts_.push_back(id);
      before = id;
    }
    return cuts_.back() == result;
  }

  // Appends to `steps` the step that begins at cut number `at` (see find_cuts()), and returns the number of the cut at
  // which the step ends, or `at` if there is no such step. The step is a function of the value at cut `at` alone,
  // extended over as many cuts as possible, or else an operation with one more input.
  size_t step_from(size_t at, std::vector<PostStep>& steps) const {
    for (size_t end = cuts_.size() - 1; end > at; --end)
      if (const auto found = activation_between(group_, domain_, cuts_[at], cuts_[end])) {
        steps.push_back({.activation = found, .tensor = {}});
        return end;
      }
    const NodeId id = cuts_[at + 1];
    const Node& node = group_.nodes[id];
    if (node.operands.size() != 2 || (node.dtype != DType::f32 && node.dtype != narrow_)) return at;
    const std::vector<Domain::Operand>& operands = domain_.operands[id];
    const size_t other = operands[0].source == cuts_[at] ? 1 : 0;
    if (operands[1 - other].source != cuts_[at] || !operands[other].is_direct()) return at;
    if (other == 0 && !is_commutative(node.op)) return at;
    if (!is_one_of(node.op)) return at;
    const Access& access = operands[other].access;
    if (!access.guards.empty() || !is_zero(access.strides, domain_.reduced)) return at;
    steps.push_back(
        {.activation = std::nullopt, .op = node.op, .tensor = {access.input, access.offset, access.strides}});
    return at + 1;
  }

  static bool is_one_of(Op op) {
    return op == Op::add || op == Op::sub || op == Op::mul || op == Op::div || op == Op::min || op == Op::max;
  }

  const Graph& group_;
  const Domain& domain_;
  DType narrow_;
  std::vector<NodeId> cuts_;
};

// An axis of an image in memory: its extent, and its stride in elements.
struct ImageAxis {
  int64_t extent = 1, stride = 1;
};

// Finds the innermost two axes of an image in memory: the axis over its rows, and the axis over the elements of a row.
bool find_axes(const Graph& group, NodeId input, ImageAxis axes[2]) {
  const Shape& shape = group.nodes[input].shape;
  if (shape.size() < 2) return false;
  const std::vector<int64_t> strides = row_major_strides(shape);
  for (size_t i = 0; i < 2; ++i) axes[i] = {shape[shape.size() - 2 + i], strides[shape.size() - 2 + i]};
  return true;
}

// How the contraction's right operand reads an image. `padded`: the image is surrounded by zeros, and the guards of
// `access` say where it ends.
struct ImageRead {
  Access access;
  bool padded = false;
};
std::optional<ImageRead> image_read(const Domain::Operand& operand) {
  if (operand.gather_extent != 0) return std::nullopt;
  if (operand.is_direct()) return ImageRead{operand.access, false};
  if (operand.pieces.size() != 2) return std::nullopt;
  const Piece &image = operand.pieces[0], &pad = operand.pieces[1];
  if (image.source >= 0 || image.constant || !pad.constant || pad.value != 0) return std::nullopt;
  return ImageRead{image.access, true};
}

// Finds the two loops that move a convolution's window along an axis of the image: the loop over the output positions,
// and the loop over the window's taps. Returns false if no window slides along the axis.
bool slide_along(const Domain& domain, const Access& image, const ImageAxis& axis, const ImageAxis* outer,
                 SlidingLoop& loop) {
  loop.extent = axis.extent;
  loop.image_stride = axis.stride;
  const auto along = [&](AtomId a) {
    const int64_t s = image.strides[a];
    return s != 0 && s % axis.stride == 0 && (outer == nullptr || s < outer->stride) && s / axis.stride < axis.extent;
  };
  for (const AtomId a : domain.n) {
    if (!along(a)) continue;
    if (loop.output >= 0) return false;
    loop.output = a;
    loop.stride = image.strides[a] / axis.stride;
  }
  for (const AtomId a : domain.reduced) {
    if (!along(a)) continue;
    if (loop.tap >= 0) return false;
    loop.tap = a;
    loop.dilation = image.strides[a] / axis.stride;
  }
  return loop.output >= 0;
}

// Sets loop.before, the padding before the image along an axis, from the guards of the reads along that axis. Counts
// these guards in `used`. Returns false if they are not the guards of a window.
bool padding_along(const Access& image, SlidingLoop& loop, size_t& used) {
  for (const Guard& guard : image.guards) {
    const bool mine = guard.strides[loop.output] != 0 || (loop.tap >= 0 && guard.strides[loop.tap] != 0);
    if (!mine) continue;
    for (size_t a = 0; a < guard.strides.size(); ++a) {
      const auto atom = static_cast<AtomId>(a);
      const int64_t expected = atom == loop.output ? loop.stride : atom == loop.tap ? loop.dilation : 0;
      if (guard.strides[a] != expected) return false;
    }
    if (guard.extent != loop.extent || guard.offset > 0) return false;
    loop.before = -guard.offset;
    ++used;
  }
  return true;
}

bool find_convolution(const Graph& group, const Domain& domain, const Access& image, Product& product) {
  ImageAxis axes[2];
  if (domain.m.size() != 1 || domain.batch.size() > 1 || !find_axes(group, image.input, axes)) return false;
  if (!slide_along(domain, image, axes[1], &axes[0], product.width)) return false;
  const ImageAxis plane{0, axes[0].extent * axes[0].stride};
  if (!slide_along(domain, image, axes[0], &plane, product.height)) return false;
  size_t used = 0;
  if (!padding_along(image, product.height, used) || !padding_along(image, product.width, used)) return false;
  if (used != image.guards.size()) return false;
  // Besides the loops of the window, there may be one loop over the images of the batch and one over the channels.
  std::vector<AtomId> images = domain.batch, channels;
  for (const AtomId a : domain.n)
    if (a != product.height.output && a != product.width.output) images.push_back(a);
  for (const AtomId a : domain.reduced)
    if (a != product.height.tap && a != product.width.tap) channels.push_back(a);
  if (images.size() > 1 || channels.size() > 1 || !is_zero(product.left.strides, images)) return false;
  product.image = images.empty() ? -1 : images[0];
  product.channel = channels.empty() ? -1 : channels[0];
  // The access starts at an element of the padding, but a library takes the address of the first element that is in
  // memory. So the offset is moved past the padding.
  product.right.offset = image.offset + product.height.before * axes[0].stride + product.width.before * axes[1].stride;
  return product.right.offset >= 0 && (product.height.tap >= 0 || product.width.tap >= 0);
}

}  // namespace

std::optional<Product> product_of(const Graph& group, const Domain& domain, ProductTypes types) {
  if (domain.cls != LoopClass::kContract || domain.contract < 0 || domain.stores.size() != 1) return std::nullopt;
  const Domain::Store& store = domain.stores[0];
  const Node& contract = group.nodes[domain.contract];
  if (store.source < 0 || !store.pieces.empty() || !store.access.guards.empty()) return std::nullopt;
  for (const Atom& atom : domain.atoms)
    if (atom.extent == 0) return std::nullopt;
  const size_t right_at = static_cast<size_t>(domain.right_operand());
  const std::vector<Domain::Operand>& operands = domain.operands[domain.contract];
  const Domain::Operand &left = operands[1 - right_at], &right = operands[right_at];
  const std::optional<ImageRead> image = image_read(right);
  if (!left.is_direct() || !left.access.guards.empty() || !image) return std::nullopt;
  const auto type = [&](NodeId id) { return group.nodes[id].dtype; };
  const DType narrow = type(left.access.input);
  const bool halves = types == ProductTypes::kHalves && (narrow == DType::f16 || narrow == DType::bf16);
  const auto is_known = [&](NodeId id) { return type(id) == DType::f32 || (halves && type(id) == narrow); };
  if (narrow != DType::f32 && !halves) return std::nullopt;
  for (const NodeId factor : {contract.operands[0], contract.operands[1], image->access.input})
    if (type(factor) != narrow) return std::nullopt;
  if (!is_known(domain.contract) || !is_known(store.source)) return std::nullopt;
  Product product;
  product.factors = narrow;
  product.type = type(store.source);
  product.left = {left.access.input, left.access.offset, left.access.strides};
  product.right = {image->access.input, image->access.offset, image->access.strides};
  product.result = {-1, store.access.offset, store.access.strides};
  if (!is_zero(product.left.strides, domain.n) || !is_zero(product.right.strides, domain.m)) return std::nullopt;
  const std::optional<std::vector<PostStep>> post = Epilogue(group, domain, narrow).steps();
  if (!post) return std::nullopt;
  product.post = *post;
  for (const PostStep& step : product.post)
    if (!step.activation && !is_known(step.tensor.input)) return std::nullopt;
  product.convolution = find_convolution(group, domain, image->access, product);
  const bool plain = domain.reduced.size() == 1 && !image->padded && image->access.guards.empty();
  if (!product.convolution && !plain) return std::nullopt;
  return product;
}

}  // namespace wl
