// Ops on tokenised text: counts of n-grams of numbers.
#include <algorithm>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

// Counts how often each n-gram of a pool occurs, with its elements adjacent or up to a limit of other elements between
// them. pool_int64s has the n-grams of 1, 2, ... elements; ngram_counts says where each length begins.
T count_ngrams(Call& c) {
  const T x = c.in(0);
  const auto pool = c.attr_ints("pool_int64s"), begins = c.attr_ints("ngram_counts"),
             columns = c.attr_ints("ngram_indexes");
  const int64_t least = c.attr("min_gram_length", 1), most = c.attr("max_gram_length", 1),
                skips = c.attr("max_skip_count", 0);
  const auto weights = c.attr_numbers("weights");
  const std::string mode = c.attr_text("mode", "TF");
  if (!c.has_attr("pool_int64s")) c.missing("strings are not supported");
  if (x.rank() < 1 || least < 1 || most < least || most > 64 || skips < 0 || skips > 64) {
    c.fail("n-grams of ", least, " to ", most, " elements with ", skips, " skips of shape ", shape_text(x.shape()));
  }
  int64_t width = 0;
  for (const int64_t column : columns) {
    if (column < 0 || column > kLiteralBytes) c.fail("ngram_indexes: ", column, " is out of range");
    width = std::max(width, column + 1);
  }
  const int64_t last = x.rank() - 1, length = x.extent(last);
  Shape rows = x.shape();
  rows.pop_back();
  std::vector<T> counts;  // shapes: [rows..., n-grams of one length]
  int64_t done = 0;
  for (int64_t n = 1; n <= static_cast<int64_t>(begins.size()); ++n) {
    const auto size = static_cast<int64_t>(pool.size());
    const int64_t begin = begins[static_cast<size_t>(n) - 1];
    const int64_t end = n < static_cast<int64_t>(begins.size()) ? begins[static_cast<size_t>(n)] : size;
    if (begin < 0 || end < begin || end > size) c.fail("ngram_counts ", shape_text(begins), " do not fit the pool");
    const int64_t grams = (end - begin) / n;
    if (grams == 0) continue;
    done += grams;
    Shape shape = rows;
    shape.push_back(grams);
    T sum = c.constant(0, DType::i64, shape);
    const Literal pooled = int_literal({grams, n}, {pool.begin() + begin, pool.begin() + begin + grams * n});
    const T wanted = c.literal_tensor(pooled, cat(":grams", n));
    for (int64_t skip = 0; n >= least && n <= most && skip <= (n == 1 ? 0 : skips); ++skip) {
      if ((n - 1) * (skip + 1) >= length) continue;
      const T places = window(cast(x, DType::i64), {last}, {n, 1, skip + 1});  // shape: [rows..., places, n]
      const T same = apply(Op::eq, {unsqueeze(places, {last + 1}), wanted});
      sum = sum +
            reduce(Op::reduce_sum, cast(reduce(Op::reduce_min, same, {last + 2}, false), DType::i64), {last}, false);
    }
    counts.push_back(sum);
  }
  if (counts.empty() || done != static_cast<int64_t>(columns.size()))
    c.fail("ngram_indexes has ", columns.size(), " entries for ", done, " n-grams");
  std::vector<int64_t> source(static_cast<size_t>(width), -1);
  for (size_t i = 0; i < columns.size(); ++i) source[static_cast<size_t>(columns[i])] = static_cast<int64_t>(i);
  std::vector<double> factor;
  for (int64_t& i : source) {
    const auto at = static_cast<size_t>(std::max<int64_t>(i, 0));
    factor.push_back(i < 0 ? 0 : mode != "TF" && at < weights.size() ? weights[at] : 1);
    i = std::max<int64_t>(i, 0);
  }
  T count = gather_axis(concat(counts, last), c.literal_tensor(int_literal({width}, source), ":columns"), last);
  count = cast(count, DType::f32);
  if (mode == "IDF") count = apply(Op::min, {count, 1.0});
  return count * c.literal_tensor(make_literal(DType::f32, {width}, factor), ":weights");
}

}  // namespace wl::onnx_import
