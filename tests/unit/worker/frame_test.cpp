#include "worker/drivers/frame.h"

#include <gtest/gtest.h>

#include "worker/drivers/messages.h"

namespace wl {
namespace {

TEST(Frame, SurvivesAnyCut) {
  const std::string bytes = encode({FrameKind::kPeek, 77, "payload"}) + encode({FrameKind::kDone, 78, ""});
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameReader reader;
    reader.append(bytes.data(), cut);
    std::vector<Frame> frames;
    for (int half = 0; half < 2; ++half) {
      for (absl::StatusOr<Frame> frame = reader.next(); frame.ok(); frame = reader.next()) frames.push_back(*frame);
      if (half == 0) reader.append(bytes.data() + cut, bytes.size() - cut);
    }
    ASSERT_EQ(frames.size(), 2u) << cut;
    EXPECT_EQ(frames[0].kind, FrameKind::kPeek);
    EXPECT_EQ(frames[0].request, 77u);
    EXPECT_EQ(frames[0].payload, "payload");
    EXPECT_EQ(frames[1].request, 78u);
    EXPECT_EQ(reader.next().status().code(), absl::StatusCode::kNotFound);
  }
}

TEST(Frame, RefusesWhatCannotBeOne) {
  for (const std::string& bytes :
       {std::string(9, '\xff'), std::string(9, '\0'), std::string("\x05\0\0\0\x63\0\0\0\0", 9)}) {
    FrameReader reader;
    reader.append(bytes.data(), bytes.size());
    EXPECT_EQ(reader.next().status().code(), absl::StatusCode::kDataLoss);
  }
}

SetupCommand setup() {
  SetupCommand command;
  BufferSpec spec;
  spec.name = "x";
  spec.dtype = DType::bf16;
  spec.shape = {3, 4};
  spec.stream = 9;
  spec.fill.literal = {1, 2.5};
  command.buffers = {spec, spec};
  command.buffers[1].output = true;
  command.seed = ~uint64_t{0};
  command.cold = true;
  command.threads = 3;
  command.cache_bytes = 12345;
  command.trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  return command;
}

TEST(Messages, RoundTrip) {
  const absl::StatusOr<SetupCommand> back = unpack<SetupCommand>(pack(setup()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->buffers, setup().buffers);
  EXPECT_EQ(back->seed, ~uint64_t{0});
  EXPECT_TRUE(back->cold);
  EXPECT_EQ(back->threads, 3);
  EXPECT_EQ(back->cache_bytes, 12345);
  EXPECT_EQ(back->trace, setup().trace);
  TimeCommand time{{4, 5}, {}};
  time.recipe.hopeless_factor = 3.5;
  time.recipe.best_ns = 99;
  time.recipe.lost_factor = 1.25;
  const absl::StatusOr<TimeCommand> again = unpack<TimeCommand>(pack(time));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->slots, time.slots);
  EXPECT_EQ(again->recipe, time.recipe);
  TimeAnswer answer;
  answer.slots = {{{1, 2, 3}, true}, {}};
  answer.damage = "none";
  const absl::StatusOr<TimeAnswer> answered = unpack<TimeAnswer>(pack(answer));
  ASSERT_TRUE(answered.ok());
  EXPECT_EQ(answered->slots[0].samples_ns, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_TRUE(answered->slots[0].hopeless);
  EXPECT_EQ(answered->damage, "none");
}

TEST(Messages, EveryTruncationAndExtensionIsRefused) {
  const std::string bytes = pack(setup());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(unpack<SetupCommand>(bytes.substr(0, n)).ok()) << n;
  EXPECT_FALSE(unpack<SetupCommand>(bytes + "x").ok());
}

// Unpacking a message with a flipped bit must neither crash nor allocate more than the message can hold. Most such
// messages are refused.
TEST(Messages, FlippedBitsAreHarmless) {
  const std::string bytes = pack(setup());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    (void)unpack<SetupCommand>(flipped);
    (void)unpack<PeekAnswer>(flipped);
    (void)unpack<TimeAnswer>(flipped);
  }
}

}  // namespace
}  // namespace wl
