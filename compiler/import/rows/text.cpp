// Ops on tokenised text: they count n-grams of tokens, which are numbers.
#include <algorithm>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

namespace {

constexpr size_t kMostOfAColumn = 16;

// Returns which n-grams are added up in each column of the result: element [k][column] is the number of the column's
// k-th n-gram, or -1 if the column has no more than k n-grams. columns[i] is the column of n-gram i, and `width` is the
// number of columns.
std::vector<std::vector<int64_t>> sources_of(Call& c, const std::vector<int64_t>& columns, int64_t width,
                                             bool weighted) {
  std::vector<std::vector<int64_t>> sources;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t k = 0;
    while (k < sources.size() && sources[k][static_cast<size_t>(columns[i])] >= 0) ++k;
    if (k == kMostOfAColumn) c.missing("more than ", kMostOfAColumn, " n-grams of one column");
    if (k > 0 && weighted) c.missing("several n-grams of one column with weights");
    if (k == sources.size()) sources.emplace_back(static_cast<size_t>(width), -1);
    sources[k][static_cast<size_t>(columns[i])] = static_cast<int64_t>(i);
  }
  return sources;
}

}  // namespace

// Counts how often each n-gram of a pool occurs in the input, with its tokens adjacent or with up to a limit of other
// tokens between them. Attribute pool_int64s has the n-grams, sorted by length; ngram_counts says where the n-grams of
// each length begin.
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
  std::vector<T> counts;  // for each length n, the counts of its n-grams, of shape [rows..., n-grams of this length]
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
      // `places` has all windows of n tokens, in shape [rows..., places, n].
      const T places = window(cast(x, DType::i64), {last}, {n, 1, skip + 1});
      const T same = apply(Op::eq, {unsqueeze(places, {last + 1}), wanted});
      sum = sum +
            reduce(Op::reduce_sum, cast(reduce(Op::reduce_min, same, {last + 2}, false), DType::i64), {last}, false);
    }
    counts.push_back(sum);
  }
  if (counts.empty() || done != static_cast<int64_t>(columns.size()))
    c.fail("ngram_indexes has ", columns.size(), " entries for ", done, " n-grams");
  std::vector<std::vector<int64_t>> sources = sources_of(c, columns, width, mode != "TF" && !weights.empty());
  std::vector<double> factor;
  for (const int64_t i : sources[0]) {
    const auto at = static_cast<size_t>(std::max<int64_t>(i, 0));
    factor.push_back(i < 0 ? 0 : mode != "TF" && at < weights.size() ? weights[at] : 1);
  }
  const T grams = concat(counts, last);
  T count;
  for (size_t k = 0; k < sources.size(); ++k) {
    std::vector<double> there;
    for (int64_t& i : sources[k]) {
      there.push_back(i >= 0 ? 1 : 0);
      i = std::max<int64_t>(i, 0);
    }
    const T part = gather_axis(grams, c.literal_tensor(int_literal({width}, sources[k]), cat(":columns", k)), last);
    if (k == 0) {
      count = part;  // columns without an n-gram get a meaningless count here, which is multiplied by 0 below
    } else {
      count = count + part * c.literal_tensor(make_literal(DType::i64, {width}, there), cat(":there", k));
    }
  }
  count = cast(count, DType::f32);
  if (mode == "IDF") count = apply(Op::min, {count, 1.0});
  return count * c.literal_tensor(make_literal(DType::f32, {width}, factor), ":weights");
}

}  // namespace wl::onnx_import
