#include "files/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/scratch.h"

namespace wl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ReadTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view bytes) const {
    const std::string path = scratch_.path(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::string message(const std::string& path, int64_t most = kMostModel) {
    const auto read = read_file(path, most);
    EXPECT_FALSE(read.ok()) << path;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(read.status().message());
  }
  const Scratch scratch_;
  const std::string folder_ = scratch_.folder();
};

TEST_F(ReadTest, ReadsRegularFilesAlsoByLinks) {
  const std::string path = file("a", std::string("1\0\n2", 4));
  EXPECT_EQ(*read_file(path), std::string("1\0\n2", 4));
  EXPECT_EQ(*read_file(path, 4), std::string("1\0\n2", 4));
  EXPECT_EQ(*read_file(file("empty", "")), "");
  fs::create_symlink("a", folder_ + "/link");
  EXPECT_EQ(read_file(folder_ + "/link")->size(), 4u);
}

// Reading anything but a regular file is refused at once, and does not block on a pipe without a writer or an endless
// device.
TEST_F(ReadTest, WhatIsNoFileIsSaidToBeNone) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message(pipe), "cannot read " + pipe + ": it is a named pipe, expected a regular file");
  EXPECT_EQ(message("/dev/zero"), "cannot read /dev/zero: it is a device, expected a regular file");
  EXPECT_EQ(message(folder_), "cannot read " + folder_ + ": it is a folder, expected a regular file");
  EXPECT_EQ(message(folder_ + "/none"), "cannot read " + folder_ + "/none: No such file or directory");
  fs::create_symlink("circle", folder_ + "/circle");
  EXPECT_THAT(message(folder_ + "/circle"), HasSubstr("symbolic links"));
  const int socket_file = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string place = folder_ + "/socket";
  place.copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(bind(socket_file, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(message(place), "cannot read " + place + ": it is a socket, expected a regular file");
  close(socket_file);
}

TEST_F(ReadTest, LargeFilesAreNotRead) {
  const std::string path = file("sparse", "x");
  fs::resize_file(path, uintmax_t{1} << 42);
  EXPECT_EQ(message(path), "cannot read " + path + ": it has 4398046511104 bytes, over the limit of 2147483647");
  EXPECT_THAT(message(path, most_array_bytes()), HasSubstr("over the limit of "));
  const auto opened = RegularFile::open(path, int64_t{1} << 62);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->part(int64_t{1} << 41, 2).value(), std::string(2, '\0'));
  EXPECT_THAT(opened->part(0, int64_t{1} << 42).status().message(), HasSubstr("4398046511104 bytes, more than the "));
  EXPECT_THAT(opened->part(int64_t{1} << 42, 1).status().message(), HasSubstr("1 from byte 4398046511104 on"));
  EXPECT_FALSE(opened->part(-1, 1).ok());
  EXPECT_FALSE(opened->part(1, INT64_MAX).ok());
}

TEST_F(ReadTest, AFileThatGrewPastItsLimitIsNotRead) {
  const std::string path = file("growing", "1234");
  const auto opened = RegularFile::open(path, 4);
  ASSERT_TRUE(opened.ok());
  std::ofstream(path, std::ios::binary | std::ios::app) << "5";
  EXPECT_THAT(opened->all().status().message(), HasSubstr("it has grown to more than 4 bytes"));
}

TEST_F(ReadTest, MemoryIsKnown) {
  EXPECT_GT(most_array_bytes(), int64_t{16} << 20);
  EXPECT_TRUE(check_array_bytes("x", 4096).ok());
  EXPECT_THAT(check_array_bytes("x", int64_t{1} << 50).message(),
              HasSubstr("x: has 1125899906842624 bytes, more than"));
}

}  // namespace
}  // namespace wl
