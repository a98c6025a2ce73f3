// Descriptions of the columns of a table. Each column has one entry, which says how a field of a struct is written and
// read; the SQL statements are made from the entries. A new field of a record needs a migration in schema/ and an
// entry.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/store/sql/sql.h"

namespace wl {

template <typename Record>
struct SqlColumn {
  const char* name;
  SqlValue (*get)(const Record& record);
  void (*set)(Record& record, const Sql::Row& row, int at);
};

// Conversions between fields and values of SQLite, by type. SQLite stores a NaN as NULL.
template <typename T>
requires std::is_integral_v<T> || std::is_enum_v<T> SqlValue to_column(const T& field) {
  return static_cast<int64_t>(field);
}
inline SqlValue to_column(double field) {
  return field;
}
inline SqlValue to_column(const std::string& field) {
  return field;
}
inline SqlValue to_column(const std::vector<int64_t>& field) {
  return absl::StrJoin(field, " ");
}
template <typename T>
requires std::is_integral_v<T> || std::is_enum_v<T>
void from_column(T& field, const Sql::Row& row, int at) {
  field = static_cast<T>(row.integer(at));
}
inline void from_column(double& field, const Sql::Row& row, int at) {
  field = row.null(at) ? std::numeric_limits<double>::quiet_NaN() : row.real(at);
}
inline void from_column(std::string& field, const Sql::Row& row, int at) {
  field = row.text(at);
}
inline void from_column(std::vector<int64_t>& field, const Sql::Row& row, int at) {
  const std::string text = row.text(at);
  for (absl::string_view item : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int64_t number = 0;
    if (absl::SimpleAtoi(item, &number)) field.push_back(number);
  }
}

// Returns the description of the column that stores a field of Record. `path` names the field, which may also be a
// field of a member: column<BatchRow, &BatchRow::phase>("phase").
template <typename Record, auto... path>
constexpr SqlColumn<Record> column(const char* name) {
  return {name, [](const Record& record) { return to_column((record.*....*path)); },
          [](Record& record, const Sql::Row& row, int at) { from_column((record.*....*path), row, at); }};
}

// Returns the names of the columns for a SELECT, as "a, b, c". Columns named in `absent` are selected as NULL; `prefix`
// is put before the names of all other columns.
template <typename Record>
std::string names_of(std::span<const SqlColumn<Record>> columns, std::string_view prefix = "",
                     std::span<const std::string_view> absent = {}) {
  return absl::StrJoin(columns, ", ", [&](std::string* out, const SqlColumn<Record>& one) {
    const bool left_out = std::find(absent.begin(), absent.end(), one.name) != absent.end();
    append(out, left_out ? "NULL AS " : prefix, one.name);
  });
}

template <typename Record>
Record record_from(std::span<const SqlColumn<Record>> columns, const Sql::Row& row) {
  Record record;
  for (size_t i = 0; i < columns.size(); ++i) columns[i].set(record, row, static_cast<int>(i));
  return record;
}

template <typename Record>
absl::Status insert(Sql& sql, const char* table, std::span<const SqlColumn<Record>> columns, const Record& record) {
  std::vector<SqlValue> values;
  values.reserve(columns.size());
  for (const SqlColumn<Record>& one : columns) values.push_back(one.get(record));
  const std::vector<const char*> marks(columns.size(), "?");
  const std::string text =
      cat("INSERT INTO ", table, " (", names_of(columns), ") VALUES (", absl::StrJoin(marks, ", "), ")");
  return sql.run_with(text.c_str(), values);
}

}  // namespace wl
