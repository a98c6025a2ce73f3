// Makes the file of a store and brings older formats up to date, by the migrations of schema/.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compiler/base/status.h"
#include "server/store/sql/sql.h"

namespace wl {

// The migrations, embedded at build time in the order of their numbers: schema/0001_*.sql makes version 1. They only go
// forward: to change the schema, add a file with the next number.
std::span<const std::string_view> schema_migrations();

// Returns the format of an open database; 0: it has no table yet. FailedPrecondition: the database is of another
// program, or has a newer format.
absl::StatusOr<int64_t> check_format(Sql& sql, const std::string& file);
// Brings an open database to the newest format, with one transaction for each migration. Errors as for check_format().
absl::Status migrate(Sql& sql, const std::string& file);
// Makes an empty store. It gets its name only when it is complete and on the disk.
absl::Status make_store_file(const std::string& file, const Sql::OpenOptions& options);

}  // namespace wl
