// The expression of a map as text that reads back exactly: nodes keep their order and sharing. A node that is used
// once, right where it was computed, is written inside its user; any other node gets a name, "$N = ...;", where N is
// its number. Leaves are the map's tiles. A dtype that is not the usual one for the node follows in angle brackets:
// "cast<f16>(%3)".
#pragma once

#include <functional>
#include <string>

#include "compiler/kernel/kernel.h"
#include "compiler/kernel/text/text_cursor.h"

namespace wl {

std::string expr_text(const Kernel& kernel, const Instr& map);

// Parses the text that expr_text() returns, and sets map.expr and map.args. `tile` reads a tile such as "%3", whose
// type must be known.
using TileReader = std::function<absl::Status(TextCursor& in, TileId& tile)>;
absl::Status read_expr(TextCursor& in, const Kernel& kernel, const TileReader& tile, Instr& map);

}  // namespace wl
