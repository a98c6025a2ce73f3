// Ops on patches of images, and ops that crop tensors.
#include <algorithm>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

// Adds up all patches, each at its position in the image. The sum has one term for each tap (position within a patch):
// a tensor with that element of every patch at its place in the image.
T col_to_im(Call& c) {
  const T x = c.in(0);
  const auto image = c.ints(1), block = c.ints(2);
  const size_t spatial = image.size();
  const auto strides = c.attr_ints("strides", std::vector<int64_t>(spatial, 1));
  const auto dilations = c.attr_ints("dilations", std::vector<int64_t>(spatial, 1));
  const auto pads = c.attr_ints("pads", std::vector<int64_t>(2 * spatial, 0));
  if (x.rank() != 3 || spatial < 1 || spatial > 6 || block.size() != spatial || strides.size() != spatial ||
      dilations.size() != spatial || pads.size() != 2 * spatial) {
    c.fail("columns ", shape_text(x.shape()), ", image_shape ", shape_text(image), " and block_shape ",
           shape_text(block), " do not fit");
  }
  int64_t taps = 1;
  Shape positions, padded;
  for (size_t i = 0; i < spatial; ++i) {
    for (const int64_t v : {image[i], block[i], strides[i], dilations[i]}) {
      if (v < 1 || v > (int64_t{1} << 20))
        c.fail("image_shape, block_shape, strides or dilations: ", v, " is out of range");
    }
    for (const int64_t v : {pads[i], pads[i + spatial]}) {
      if (v < 0 || v > (int64_t{1} << 20)) c.fail("pads ", shape_text(pads), " are out of range");
    }
    if (taps > 1024 / block[i]) c.missing("blocks of shape ", shape_text(block));
    taps *= block[i];
    padded.push_back(image[i] + pads[i] + pads[i + spatial]);
    const int64_t reach = (block[i] - 1) * dilations[i] + 1;
    if (reach > padded[i]) c.fail("block_shape ", shape_text(block), " does not fit image_shape ", shape_text(image));
    positions.push_back((padded[i] - reach) / strides[i] + 1);
  }
  c.check_shape(padded);
  const int64_t batch = x.extent(0), channels = x.extent(1) / taps;
  if (channels * taps != x.extent(1) || elements(positions) != x.extent(2)) {
    c.fail("columns of shape ", shape_text(x.shape()), " are not ", taps, " taps at ", elements(positions),
           " positions");
  }
  const T apart = reshape(x, {batch, channels, taps, x.extent(2)});
  T sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Shape shape = {batch, channels};
    shape.insert(shape.end(), positions.begin(), positions.end());
    T y = reshape(slice_axis(apart, 2, tap, 1, 1), shape);
    int64_t rest = tap;
    std::vector<int64_t> low(shape.size(), 0), high = low;
    for (size_t i = spatial; i-- > 0;) {
      const int64_t start = rest % block[i] * dilations[i], n = positions[i];
      const auto axis = static_cast<int64_t>(i) + 2;
      rest /= block[i];
      if (strides[i] > 1) {
        Shape with = y.shape(), merged = with;
        with.insert(with.begin() + axis + 1, 1);
        std::vector<int64_t> none(with.size(), 0), zeros = none;
        zeros[i + 3] = strides[i] - 1;
        merged[i + 2] = n * strides[i];
        y = slice_axis(reshape(pad(reshape(y, with), none, zeros, 0), merged), axis, 0, 1, (n - 1) * strides[i] + 1);
      }
      low[i + 2] = start;
      high[i + 2] = padded[i] - start - ((n - 1) * strides[i] + 1);
    }
    y = pad(y, low, high, 0);
    sum = sum.valid() ? sum + y : y;
  }
  for (size_t i = 0; i < spatial; ++i) sum = slice_axis(sum, static_cast<int64_t>(i) + 2, pads[i], 1, image[i]);
  return sum;
}

T center_crop_pad(Call& c) {
  T x = c.in(0);
  const auto shape = c.ints(1);
  auto axes = c.attr_ints("axes", axes_from(0, x.rank()));
  for (int64_t& axis : axes) axis = c.axis(axis, x.rank());
  c.axes(axes, x.rank());
  if (shape.size() != axes.size()) c.fail("shape ", shape_text(shape), " does not fit ", axes.size(), " axes");
  std::vector<int64_t> low(x.shape().size(), 0), high = low;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (shape[i] < 0 || shape[i] > kMaxElements) c.fail("shape ", shape_text(shape), " is out of range");
    const int64_t more = shape[i] - x.extent(axes[i]);
    if (more < 0) x = slice_axis(x, axes[i], -more / 2, 1, shape[i]);
    low[static_cast<size_t>(axes[i])] = std::max<int64_t>(more, 0) / 2;
    high[static_cast<size_t>(axes[i])] = std::max<int64_t>(more, 0) - low[static_cast<size_t>(axes[i])];
  }
  return pad(x, low, high, 0);
}

}  // namespace wl::onnx_import
