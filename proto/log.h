// The log of a program: lines on stderr, as text for people or, with --log-format json, as one JSON object each. Every
// line goes through spdlog; this file defines its form and adds fields to it.
//
//   [2026-11-24 09:30:12.123] [warploomd] [info] job begins (job=jobs/7 trace=4bf92f3577b34da6a3ce929d0e0e4736)
//   {"ts":"2026-11-24T09:30:12.123456Z","level":"info","program":"warploomd","message":"job begins","job":"jobs/7",
//    "trace":"4bf92f3577b34da6a3ce929d0e0e4736"}
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wl {

enum class LogFormat : uint8_t { kText, kJson };
// The values of the option --log-format, in the order of enum LogFormat.
inline constexpr const char* kLogFormatNames[] = {"text", "json"};

// A named value that a line has besides its message. A field with an empty value is left out.
struct LogField {
  const char* name;
  std::string value;
  bool json = false;  // whether `value` is JSON text, which a JSON line contains as an object and not as a string
};
using LogFields = std::vector<LogField>;

// Sets the program's name, and the format of all lines that spdlog writes from now on. To be called before other
// threads write.
void open_log(const std::string& program, LogFormat format);
// Writes a line. In the text format, control characters in fields become '?', since they could end or colour the line.
void log_line(spdlog::level::level_enum level, std::string_view message, const LogFields& fields);
// Writes an audit line, which says which caller did what. `json`: text of a JSON object with these facts.
void log_audit(spdlog::level::level_enum level, const std::string& json);
// Writes the reason for which the program ends to stderr, as "PROGRAM: MESSAGE" or as a line of a JSON log.
void log_end(const char* program, const std::string& message);

// Returns a line of a JSON log without its line end. It is declared here for tests. `unix_us`: microseconds since 1970.
// Bytes that are not UTF-8 are replaced.
std::string json_log_line(int64_t unix_us, std::string_view level, std::string_view program, std::string_view message,
                          const LogFields& fields);

}  // namespace wl
