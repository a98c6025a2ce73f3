// Reads and changes the file of a store as another program would: through SQLite, without the store's code.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace wl {

using Rows = std::vector<std::vector<std::string>>;

// Returns the rows of a query; all values as text or bytes, NULL as an empty string.
inline Rows rows_of(const std::string& file, const std::string& query) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  Rows rows;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* data = static_cast<const char*>(sqlite3_column_blob(statement, i));
      rows.back().emplace_back(data == nullptr ? "" : data, static_cast<size_t>(sqlite3_column_bytes(statement, i)));
    }
  }
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return rows;
}

// Returns the integer that a query gives. The test fails if the query gives anything else.
inline int64_t number_in(const std::string& file, const std::string& query) {
  const Rows rows = rows_of(file, query);
  if (rows.size() == 1 && rows[0].size() == 1) return std::stoll(rows[0][0]);
  ADD_FAILURE() << query << " gives no number";
  return 0;
}

// Waits until `count` workers have registered with the coordinator that has the file open.
inline void wait_for_workers(const std::string& file, int count) {
  while (number_in(file, "SELECT count(*) FROM workers") < count) std::this_thread::yield();
}

inline void run_in(const std::string& file, const std::string& script) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, script.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
}

// Expects that SQLite finds no damage in the database, and that no row refers to a missing row.
inline void expect_sound(const std::string& file) {
  EXPECT_EQ(rows_of(file, "PRAGMA integrity_check"), (Rows{{"ok"}})) << file;
  EXPECT_EQ(rows_of(file, "PRAGMA foreign_key_check"), Rows{}) << file;
}

}  // namespace wl
