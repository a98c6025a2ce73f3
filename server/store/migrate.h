// Makes the file of a store and brings older formats up to date, by the migrations of schema/.
#pragma once

#include <string>

#include "compiler/base/status.h"
#include "server/store/sql.h"

namespace wl {

// Brings an open file to the newest format, one transaction for each migration. FailedPrecondition: another program's
// database, or a newer format.
absl::Status migrate(Sql& sql, const std::string& file);
// Makes an empty store. It appears under its name when it is whole and on the disk.
absl::Status make_store_file(const std::string& file, const Sql::OpenOptions& options);

}  // namespace wl
