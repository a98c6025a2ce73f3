// RNN, GRU and LSTM are unrolled. The products of the weights with the inputs are computed for all steps at once; the
// rest is computed one step after another.
#include <functional>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

using Function = std::function<T(T)>;

// The activation functions of a node. The call operator returns function number `number` of direction number
// `direction`: the one that the node names or, if the node names none, the default defaults[number].
class Activations {
 public:
  Activations(Call& c, std::vector<std::string> defaults)
      : call_(c), names_(std::move(defaults)), each_(names_.size()) {
    given_ = c.attr_texts("activations");
    alpha_ = c.attr_numbers("activation_alpha");
    beta_ = c.attr_numbers("activation_beta");
    clip_ = c.has_attr("clip") ? c.attr_number("clip", 0) : 0;
    if (c.has_attr("clip") && !(clip_ > 0))
      c.fail("clip is ", clip_, "; it bounds magnitudes, so it must be more than 0");
  }

  Function operator()(int direction, size_t number) {
    const size_t at = static_cast<size_t>(direction) * each_ + number;
    const std::string name = at < given_.size() ? given_[at] : names_[number];
    const auto parameter = [&](const std::vector<double>& list, double otherwise) {
      return at < list.size() ? list[at] : otherwise;
    };
    const double clip = clip_;
    const auto bounded = [clip](T x) { return clip > 0 ? apply(Op::min, {apply(Op::max, {x, -clip}), clip}) : x; };
    const auto with = [&](double alpha, double beta, auto f) -> Function {
      const double a = parameter(alpha_, alpha), b = parameter(beta_, beta);
      return [=](T x) { return f(bounded(x), a, b); };
    };
    if (name == "Sigmoid") return with(0, 0, [](T x, double, double) { return apply(Op::sigmoid, {x}); });
    if (name == "Tanh") return with(0, 0, [](T x, double, double) { return apply(Op::tanh, {x}); });
    if (name == "Relu") return with(0, 0, [](T x, double, double) { return apply(Op::max, {x, 0.0}); });
    if (name == "Affine") return with(1, 0, [](T x, double a, double b) { return x * a + b; });
    if (name == "LeakyRelu") {
      return with(0.01, 0, [](T x, double a, double) { return select(apply(Op::lt, {x, 0.0}), x * a, x); });
    }
    if (name == "ThresholdedRelu") {
      return with(1, 0, [](T x, double a, double) { return select(apply(Op::gt, {x, a}), x, 0.0); });
    }
    if (name == "ScaledTanh") return with(1, 1, [](T x, double a, double b) { return apply(Op::tanh, {x * b}) * a; });
    if (name == "HardSigmoid") {
      return with(0.2, 0.5, [](T x, double a, double b) {
        return apply(Op::max, {apply(Op::min, {x * a + b, 1.0}), 0.0});
      });
    }
    if (name == "Elu") {
      return with(1, 0, [](T x, double a, double) {
        return select(apply(Op::lt, {x, 0.0}), apply(Op::expm1, {x}) * a, x);
      });
    }
    if (name == "Softsign") return with(0, 0, [](T x, double, double) { return x / (apply(Op::abs, {x}) + 1.0); });
    if (name == "Softplus") return with(0, 0, [](T x, double, double) { return softplus(x); });
    call_.fail("activation '", name, "' is unknown");
  }

 private:
  Call& call_;
  std::vector<std::string> names_, given_;
  size_t each_;
  std::vector<double> alpha_, beta_;
  double clip_;
};

struct State {
  T hidden, cell;
};

// The operands of one direction of a recurrent op. One matrix has the weights of all gates. The bias of the recurrent
// product is included in `inputs`, unless the op needs it by itself (`recurrent_bias`).
struct Direction {
  T inputs;     // inputs times weights, plus biases; shape: [steps, batch, gates * hidden]
  T recurrent;  // weights that multiply the result of the previous step; shape: [gates * hidden, hidden]
  T recurrent_bias;
  T peepholes;
  int number;
};

using Step = std::function<State(const Direction&, T inputs, const State&)>;

T part_of(T x, int64_t gate, int64_t hidden) {
  return slice_axis(x, x.rank() - 1, gate * hidden, 1, hidden);
}

T row(T x, int64_t number) {
  x.extent(0);
  Shape shape = x.shape();
  shape.erase(shape.begin());
  return reshape(slice_axis(x, 0, number, 1, 1), shape);
}

T recur(T hidden, T weights) {
  return contract(hidden, weights, "bh,gh->bg");
}

// Reverses the first `length` steps of each sequence of x, [steps, batch, ...]. If `length` is absent (an empty T), all
// steps are reversed.
T reversed(T x, T length) {
  const int64_t steps = x.extent(0);
  if (!length.valid()) return slice_axis(x, 0, steps - 1, -1, steps);
  const T at = x.call().iota(DType::i64, {steps, 1, 1}, 0), count = reshape(length, {1, length.extent(0), 1});
  const T index = select(apply(Op::lt, {at, count}), count - 1.0 - at, at);
  return take_along(x, broadcast_to(index, x.shape()), 0);
}

// Unrolls a node over its steps and returns output 0. The inputs of the node are 0 x, 1 W, 2 R, 3 B, 4 sequence_lens, 5
// initial_h and, for nodes with cells, 6 initial_c and 7 P. `split_bias`: the bias of the recurrent product must be
// kept apart from the bias of the inputs.
T run(Call& c, int64_t gates, bool cells, bool split_bias, const Step& step) {
  const bool batch_first = c.attr("layout", 0) != 0;
  T x = c.in(0);
  const T w = c.in(1), r = c.in(2);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3) c.fail("input, W and R must have rank 3");
  if (batch_first) x = transpose(x, {1, 0, 2});
  const int64_t steps = x.extent(0), batch = x.extent(1), hidden = r.extent(2), directions = w.extent(0);
  const std::string direction = c.attr_text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    c.fail("direction '", direction, "' is unknown");
  }
  if (directions != (direction == "bidirectional" ? 2 : 1) ||
      w.shape() != Shape{directions, gates * hidden, x.extent(2)} ||
      r.shape() != Shape{directions, gates * hidden, hidden}) {
    c.fail("weights of shapes ", shape_text(w.shape()), " and ", shape_text(r.shape()),
           " do not fit an input of shape ", shape_text(x.shape()));
  }
  if (const int64_t size = c.attr("hidden_size", hidden); size != hidden) {
    c.fail("hidden_size is ", size, ", but R of shape ", shape_text(r.shape()), " is for ", hidden);
  }
  if (steps < 1) c.fail("a sequence needs at least one step");
  if (steps > kMaxSteps) c.missing(steps, " steps; up to ", kMaxSteps, " are unrolled");
  T length;
  if (c.has(4)) length = cast(c.in(4), DType::i64);
  std::vector<T> outputs, last_hidden, last_cell;
  const auto initial = [&](int input, int64_t number) {
    if (!c.has(input)) return c.constant(0, x.dtype(), {batch, hidden});
    const T given = c.in(input);
    return batch_first ? reshape(slice_axis(given, 1, number, 1, 1), {batch, hidden}) : row(given, number);
  };
  for (int64_t d = 0; d < directions; ++d) {
    const bool backwards = direction == "reverse" || d == 1;
    Direction one{
        .inputs = {}, .recurrent = row(r, d), .recurrent_bias = {}, .peepholes = {}, .number = static_cast<int>(d)};
    one.inputs = contract(backwards ? reversed(x, length) : x, row(w, d), "sbi,gi->sbg");
    if (c.has(3)) {
      const T bias = row(c.in(3), d);
      const T own = slice_axis(bias, 0, 0, 1, gates * hidden),
              other = slice_axis(bias, 0, gates * hidden, 1, gates * hidden);
      one.inputs = one.inputs + (split_bias ? own : own + other);
      if (split_bias) one.recurrent_bias = other;
    }
    if (cells && c.has(7)) one.peepholes = row(c.in(7), d);
    State state{initial(5, d), {}};
    if (cells) state.cell = initial(6, d);
    std::vector<T> hidden_states;
    for (int64_t t = 0; t < steps; ++t) {
      const State next = step(one, row(one.inputs, t), state);
      T shown = next.hidden;
      if (length.valid()) {
        const T running = apply(Op::gt, {reshape(length, {batch, 1}), static_cast<double>(t)});
        shown = select(running, next.hidden, 0.0);
        state.hidden = select(running, next.hidden, state.hidden);
        if (cells) state.cell = select(running, next.cell, state.cell);
      } else {
        state = next;
      }
      hidden_states.push_back(unsqueeze(shown, {0}));
    }
    T all = concat(hidden_states, 0);
    if (backwards) all = reversed(all, length);
    outputs.push_back(unsqueeze(all, {1}));
    last_hidden.push_back(unsqueeze(state.hidden, {0}));
    if (cells) last_cell.push_back(unsqueeze(state.cell, {0}));
  }
  const auto last = [&](const std::vector<T>& states) {
    const T all = concat(states, 0);
    return batch_first ? transpose(all, {1, 0, 2}) : all;
  };
  c.set(1, last(last_hidden));
  if (cells) c.set(2, last(last_cell));
  const T y = concat(outputs, 1);  // results of all steps: [steps, directions, batch, hidden]
  return batch_first ? transpose(y, {2, 0, 1, 3}) : y;
}

}  // namespace

T rnn(Call& c) {
  Activations f(c, {"Tanh"});
  return run(c, 1, false, false, [&](const Direction& d, T x, const State& s) {
    return State{f(d.number, 0)(x + recur(s.hidden, d.recurrent)), {}};
  });
}

// The gates of a GRU, in the order of their weights, are update, reset and hidden.
T gru(Call& c) {
  Activations f(c, {"Sigmoid", "Tanh"});
  const bool before = c.attr("linear_before_reset", 0) != 0;
  return run(c, 3, false, true, [&](const Direction& d, T x, const State& s) {
    const int64_t h = s.hidden.extent(1);
    T gates = x;
    const auto weights = [&](int64_t first, int64_t count) {
      return slice_axis(d.recurrent, 0, first * h, 1, count * h);
    };
    T recurrent = recur(s.hidden, weights(0, 2));
    if (d.recurrent_bias.valid()) recurrent = recurrent + slice_axis(d.recurrent_bias, 0, 0, 1, 2 * h);
    const T update = f(d.number, 0)(part_of(gates, 0, h) + part_of(recurrent, 0, h));
    const T reset = f(d.number, 0)(part_of(gates, 1, h) + part_of(recurrent, 1, h));
    T candidate = recur(before ? s.hidden : reset * s.hidden, weights(2, 1));
    if (d.recurrent_bias.valid()) candidate = candidate + slice_axis(d.recurrent_bias, 0, 2 * h, 1, h);
    if (before) candidate = reset * candidate;
    const T fresh = f(d.number, 1)(part_of(gates, 2, h) + candidate);
    return State{(1.0 - update) * fresh + update * s.hidden, {}};
  });
}

// The gates of an LSTM, in the order of their weights, are input, output, forget and cell.
T lstm(Call& c) {
  Activations f(c, {"Sigmoid", "Tanh", "Tanh"});
  const bool coupled = c.attr("input_forget", 0) != 0;
  return run(c, 4, true, false, [&](const Direction& d, T x, const State& s) {
    const int64_t h = s.hidden.extent(1);
    const T gates = x + recur(s.hidden, d.recurrent);
    const auto gate = [&](int64_t number, int64_t peephole, T cell) {
      const T sum = part_of(gates, number, h);
      return f(d.number, 0)(d.peepholes.valid() ? sum + part_of(d.peepholes, peephole, h) * cell : sum);
    };
    const T in = gate(0, 0, s.cell), forget = coupled ? 1.0 - in : gate(2, 2, s.cell);
    const T cell = forget * s.cell + in * f(d.number, 1)(part_of(gates, 3, h));
    const T out = gate(1, 1, cell);
    return State{out * f(d.number, 2)(cell), cell};
  });
}

}  // namespace wl::onnx_import
