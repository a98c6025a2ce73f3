#include "worker/private_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/scratch.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

class PrivateFolders : public ::testing::Test {
 protected:
  const Scratch scratch;
  const std::string parent = scratch.folder();
};

TEST_F(PrivateFolders, AreKeptWhileTheirProcessLives) {
  {
    const auto folder = PrivateFolder::make(parent);
    ASSERT_TRUE(folder.ok()) << folder.status();
    std::ofstream(folder->path() + "/file") << "text";
    PrivateFolder::sweep(parent);
    EXPECT_TRUE(fs::exists(folder->path() + "/file"));
  }
  EXPECT_TRUE(fs::is_empty(parent));
}

// A folder without an owner file is removed as well. The process that made the folder was killed before it wrote that
// file, or while it removed the folder.
TEST_F(PrivateFolders, WithoutAnOwnerAreSwept) {
  fs::create_directory(parent + "/measure.empty");
  fs::create_directory(parent + "/measure.half");
  std::ofstream(parent + "/measure.half/file") << "text";
  std::ofstream(parent + "/other") << "not ours";
  PrivateFolder::sweep(parent);
  EXPECT_FALSE(fs::exists(parent + "/measure.empty"));
  EXPECT_FALSE(fs::exists(parent + "/measure.half"));
  EXPECT_TRUE(fs::exists(parent + "/other"));
}

}  // namespace
}  // namespace wl
