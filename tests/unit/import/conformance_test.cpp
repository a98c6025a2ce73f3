// Conformance of the import table: every row has a case, and every case can be imported, passes verify() and has the
// stated type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/import/import.h"
#include "compiler/import/table.h"
#include "compiler/ir/text.h"
#include "tests/unit/import/cases.h"

namespace wl::testing {
namespace {

TEST(ImportTable, EveryRowHasACase) {
  const auto cases = import_cases();
  for (const auto& row : onnx_import::rows()) {
    const bool found = std::any_of(cases.begin(), cases.end(), [&](const Case& c) {
      return c.op == row.op && c.domain == row.domain && c.opset >= row.since && c.opset <= row.until;
    });
    EXPECT_TRUE(found) << row.op << " since " << row.since << " has no case in tests/unit/import/cases.cpp";
  }
}

TEST(ImportTable, RowsDoNotOverlap) {
  const auto rows = onnx_import::rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      const bool same = rows[i].op == rows[j].op && rows[i].domain == rows[j].domain;
      EXPECT_FALSE(same && rows[i].since <= rows[j].until && rows[j].since <= rows[i].until) << rows[i].op;
    }
  }
}

TEST(ImportTable, EveryCaseImports) {
  const auto cases = import_cases();
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(case_name(cases[i], i));
    const auto imported = import_onnx(model_of(cases[i]).SerializeAsString());
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_TRUE(verify(imported->graph).ok()) << verify(imported->graph);
    ASSERT_EQ(static_cast<int>(imported->graph.outputs.size()), cases[i].outputs);
    const Node& y = imported->graph.nodes[static_cast<size_t>(imported->graph.outputs[0].node)];
    EXPECT_EQ(cat(name_of(y.dtype), shape_text(y.shape)), cases[i].result);
    const auto again = parse(print(imported->graph));
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << print(imported->graph);
    EXPECT_EQ(*again, imported->graph);
  }
}

}  // namespace
}  // namespace wl::testing
