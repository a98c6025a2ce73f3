// The functions that apply the rewrite rules in the table kRules.
#pragma once

#include <optional>

#include "compiler/ir/rules/rules.h"

namespace wl::rule {

using Result = std::optional<NodeId>;
Result commute(Builder& to, const Node& node);
Result add_zero(Builder& to, const Node& node);
Result mul_one(Builder& to, const Node& node);
Result integer_mul_zero(Builder& to, const Node& node);
Result double_neg(Builder& to, const Node& node);
Result cast_same(Builder& to, const Node& node);
Result div_power(Builder& to, const Node& node);
Result div_constant(Builder& to, const Node& node);
Result pow_small(Builder& to, const Node& node);
Result one_over(Builder& to, const Node& node);
Result rcp_sqrt(Builder& to, const Node& node);
Result fold_constants(Builder& to, const Node& node);
Result hoist_broadcast(Builder& to, const Node& node);
Result identity_view(Builder& to, const Node& node);
Result reshape_reshape(Builder& to, const Node& node);
Result transpose_transpose(Builder& to, const Node& node);
Result broadcast_broadcast(Builder& to, const Node& node);
Result slice_slice(Builder& to, const Node& node);
Result view_constant(Builder& to, const Node& node);
Result reshape_broadcast(Builder& to, const Node& node);
Result broadcast_reshape(Builder& to, const Node& node);
Result concat_window(Builder& to, const Node& node);
Result concat_elementwise(Builder& to, const Node& node);
Result take_elementwise(Builder& to, const Node& node);
Result take_broadcast(Builder& to, const Node& node);
Result div_sqrt(Builder& to, const Node& node);
Result div_repeated(Builder& to, const Node& node);
Result neg_one(Builder& to, const Node& node);
Result neg_add(Builder& to, const Node& node);
Result sub_constant(Builder& to, const Node& node);
Result sigmoid(Builder& to, const Node& node);
Result elementwise_units(Builder& to, const Node& node);
Result reduce_units(Builder& to, const Node& node);
Result broadcast_units(Builder& to, const Node& node);
Result transpose_units(Builder& to, const Node& node);
Result slice_units(Builder& to, const Node& node);
Result concat_units(Builder& to, const Node& node);
Result contract_units(Builder& to, const Node& node);
Result hoist_view(Builder& to, const Node& node);
Result reduce_transpose(Builder& to, const Node& node);
Result contract_transpose(Builder& to, const Node& node);
Result contract_order(Builder& to, const Node& node);
Result contract_letters(Builder& to, const Node& node);
Result scale_product(Builder& to, const Node& node);
Result scale_scale(Builder& to, const Node& node);
Result scale_contract(Builder& to, const Node& node);
Result byte_products(Builder& to, const Node& node);
Result requantise(Builder& to, const Node& node);

// Whether the operands of a float node show that none of its values is a denormal, so that the reciprocal of every
// value except 0 is finite. For a denormal y, x * (1/y) overflows although x / y may be a finite number. Also returns
// false if finding out would visit too many nodes.
bool has_finite_reciprocal(const Builder& to, NodeId id);

}  // namespace wl::rule
