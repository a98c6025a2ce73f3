#include "compiler/base/names.h"

#include <algorithm>

#include "absl/strings/escaping.h"

namespace wl {
namespace {

bool is_letter(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(unsigned char c) {
  return c >= '0' && c <= '9';
}

bool all_of(std::string_view value, std::string_view others) {
  return std::all_of(value.begin(), value.end(), [&](unsigned char c) {
    return is_letter(c) || is_digit(c) || others.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Returns the length in bytes of the UTF-8 character that begins at byte `at` of `text`; 0 if no valid character begins
// there.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(at), next = byte(at + 1);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(at + k) & 0xC0) != 0x80) return 0;
  // Overlong encodings, surrogates and code points above U+10FFFF are not characters.
  if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next >= 0xA0)) return 0;
  if ((lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next >= 0x90)) return 0;
  return length;
}

// Whether a text of kind kName or kText may contain the character of `length` bytes that begins at byte `at` of `text`.
bool allowed(std::string_view text, size_t at, size_t length, TextKind kind) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (kind == TextKind::kText) return first != 0;
  // The control characters U+0080 to U+009F have two bytes: 0xC2 and a byte below 0xA0.
  const bool c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
  return first >= 0x20 && first != 0x7F && !c1;
}

bool is_name(std::string_view value) {
  for (size_t at = 0; at < value.size();) {
    const size_t length = utf8_length(value, at);
    if (length == 0 || !allowed(value, at, length, TextKind::kName)) return false;
    at += length;
  }
  return true;
}

bool is_identifier(std::string_view value) {
  return !value.empty() && !is_digit(static_cast<unsigned char>(value[0])) && all_of(value, "_");
}

bool is_digest(std::string_view value) {
  return value.size() == kDigestDigits && is_hexadecimal(value);
}

bool is_trace(std::string_view value) {
  return value.size() == kTraceDigits && is_hexadecimal(value) &&
         value.find_first_not_of('0') != std::string_view::npos;
}

bool is_path(std::string_view value) {
  if (value.empty() || value.back() == '/' || !all_of(value, "_.-/")) return false;
  for (size_t at = 0; at < value.size(); ++at)
    if ((value[at] == '.' || value[at] == '/') && (at == 0 || value[at - 1] == '/')) return false;
  return true;
}

struct KindRow {
  const char* says;
  bool (*holds)(std::string_view value);
};

constexpr KindRow kKinds[] = {
    {"a C identifier", is_identifier},
    {"a SHA-256 (hexadecimal digits in lower case)", is_digest},
    {"letters, digits and \"_.:+-/\"", [](std::string_view value) { return all_of(value, "_.:+-/"); }},
    {"a path inside the folder, of letters, digits and \"_.-\"", is_path},
    {"UTF-8 without control characters", is_name},
    {"a trace id (32 hexadecimal digits in lower case, not all 0)", is_trace},
    {"hexadecimal digits in lower case", is_hexadecimal},
    {"a text without NUL", [](std::string_view value) { return value.find('\0') == std::string_view::npos; }},
};

}  // namespace

bool is_hexadecimal(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](unsigned char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

absl::Status check_text(std::string_view field, std::string_view value, TextKind kind, size_t most) {
  constexpr size_t kQuoted = 80;
  const KindRow& row = kKinds[static_cast<int>(kind)];
  if (value.size() <= most && row.holds(value)) return absl::OkStatus();
  const std::string start = absl::CHexEscape(catable(value.substr(0, kQuoted)));
  return invalid(field, ": expected ", row.says, " of at most ", most, " bytes, found ",
                 value.size() > kQuoted ? cat(value.size(), " bytes that begin with ") : "", "\"", start, "\"");
}

std::string fitted(std::string_view text, TextKind kind, size_t most) {
  std::string out;
  out.reserve(std::min(text.size(), most));
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const bool good = length > 0 && allowed(text, at, length, kind);
    if (out.size() + (good ? length : 1) > most) break;
    if (good) {
      out.append(text.substr(at, length));
    } else {
      out.push_back('?');
    }
    at += std::max<size_t>(length, 1);
  }
  return out;
}

}  // namespace wl
