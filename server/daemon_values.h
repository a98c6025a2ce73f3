// Values of the coordinator's command line and configuration file that are texts.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/base/status.h"
#include "server/engine/engine.h"
#include "server/upstream/upstream.h"

namespace wl {

// Returns the rule that --offer names. InvalidArgument: it is not none, confirmed or all.
absl::StatusOr<OfferRule> parse_offer(const std::string& text);
// Returns the seconds of a time such as "30d" or "12h", or kForEver for "never". InvalidArgument: it is none of these.
absl::StatusOr<int64_t> parse_life(const std::string& text);
// Returns what --background-hours says: "20-6" from eight in the evening until six in the morning, "always", or
// "never". InvalidArgument: it is none of these.
absl::StatusOr<EngineSettings::Background> parse_background(const std::string& text);

}  // namespace wl
