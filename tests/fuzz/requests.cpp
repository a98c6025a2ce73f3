// Any bytes are read as a message of any type of the protocol. check_fields() refuses the message or accepts it; an
// accepted message is converted to a record or an error, and is accepted again after a round trip. The first two bytes
// of the fuzzer's input choose the type. Most inputs are random messages with a few changed fields, so that the parser
// accepts them.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/base/status.h"
#include "proto/limits.h"
#include "proto/protocol.h"
#include "proto/wire.h"
#include "warploom/v1/kernel_store.pb.h"
#include "warploom/v1/tuning.pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

namespace pb = google::protobuf;
namespace v1 = warploom::v1;

const std::vector<const pb::Descriptor*>& types() {
  static const std::vector<const pb::Descriptor*> kTypes = [] {
    std::vector<const pb::Descriptor*> out;
    for (const pb::FileDescriptor* file : wl::protocol_files())
      for (int i = 0; i < file->message_type_count(); ++i) out.push_back(file->message_type(i));
    return out;
  }();
  return kTypes;
}

std::unique_ptr<pb::Message> message_of(const uint8_t* data, size_t size) {
  const size_t which = (data[0] | static_cast<size_t>(data[1]) << 8) % types().size();
  std::unique_ptr<pb::Message> out(pb::MessageFactory::generated_factory()->GetPrototype(types()[which])->New());
  if (!out->ParsePartialFromArray(data + 2, static_cast<int>(size - 2))) out->Clear();
  return out;
}

std::string some_text(std::mt19937_64& rng) {
  static const std::string kTexts[] = {
      "",
      "x",
      "cpu:avx2",
      "gcc",
      "kernel",
      "../../x",
      "/etc/passwd",
      std::string("a\0b", 3),
      "\xff\xfe",
      "\n",
      "a b",
      std::string(64, 'a'),
      std::string(64, 'G'),
      std::string(63, '0'),
      std::string(1025, 'n'),
      std::string(200, '.'),
      "graph {\n  %0 = input \"x\" : f32[4] normal(0,1)\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n"};
  return kTexts[rng() % std::size(kTexts)];
}

int64_t some_integer(std::mt19937_64& rng) {
  constexpr int64_t kIntegers[] = {0,
                                   1,
                                   2,
                                   3,
                                   8,
                                   64,
                                   4096,
                                   1 << 20,
                                   -1,
                                   std::numeric_limits<int32_t>::max(),
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min()};
  return kIntegers[rng() % std::size(kIntegers)];
}

void fill(pb::Message& message, int depth, std::mt19937_64& rng);

void set_field(pb::Message& message, const pb::FieldDescriptor* field, int depth, std::mt19937_64& rng) {
  const pb::Reflection& has = *message.GetReflection();
  const bool list = field->is_repeated();
  using F = pb::FieldDescriptor;
  switch (field->cpp_type()) {
    case F::CPPTYPE_INT32: {
      const auto value = static_cast<int32_t>(some_integer(rng));
      return list ? has.AddInt32(&message, field, value) : has.SetInt32(&message, field, value);
    }
    case F::CPPTYPE_INT64:
      return list ? has.AddInt64(&message, field, some_integer(rng)) : has.SetInt64(&message, field, some_integer(rng));
    case F::CPPTYPE_UINT64: {
      const auto value = static_cast<uint64_t>(some_integer(rng));
      return list ? has.AddUInt64(&message, field, value) : has.SetUInt64(&message, field, value);
    }
    case F::CPPTYPE_BOOL:
      return list ? has.AddBool(&message, field, true) : has.SetBool(&message, field, rng() % 2 == 0);
    case F::CPPTYPE_DOUBLE: {
      constexpr double kReals[] = {
          0, 1, -1, 0.5, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
      const double value = kReals[rng() % std::size(kReals)];
      return list ? has.AddDouble(&message, field, value) : has.SetDouble(&message, field, value);
    }
    case F::CPPTYPE_ENUM: {
      const auto value = static_cast<int>(rng() % 12);
      return list ? has.AddEnumValue(&message, field, value) : has.SetEnumValue(&message, field, value);
    }
    case F::CPPTYPE_STRING:
      return list ? has.AddString(&message, field, some_text(rng)) : has.SetString(&message, field, some_text(rng));
    case F::CPPTYPE_MESSAGE:
      return fill(list ? *has.AddMessage(&message, field) : *has.MutableMessage(&message, field), depth + 1, rng);
    default:
      return;
  }
}

// Sets most of the fields at random; lists get one or two items.
void fill(pb::Message& message, int depth, std::mt19937_64& rng) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const pb::FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (depth > 5 || rng() % 8 == 0) continue;
    set_field(message, field, depth, rng);
    if (field->is_repeated() && rng() % 2 == 0) set_field(message, field, depth, rng);
  }
}

// Changes one field of the message or of a message inside it.
void change(pb::Message& message, std::mt19937_64& rng) {
  const pb::Descriptor& type = *message.GetDescriptor();
  if (type.field_count() == 0) return;
  const pb::FieldDescriptor* field = type.field(static_cast<int>(rng() % static_cast<uint64_t>(type.field_count())));
  const pb::Reflection& has = *message.GetReflection();
  const bool inside = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
  if (inside && rng() % 4 != 0) {
    if (!field->is_repeated()) return change(*has.MutableMessage(&message, field), rng);
    const int size = has.FieldSize(message, field);
    if (size > 0) {
      const auto at = static_cast<int>(rng() % static_cast<uint64_t>(size));
      return change(*has.MutableRepeatedMessage(&message, field, at), rng);
    }
  }
  if (rng() % 4 == 0) return has.ClearField(&message, field);
  set_field(message, field, 0, rng);
}

// Converts an accepted message to its record, if it is of this type. If the conversion fails, the error must have a
// message.
template <typename Message>
void decode(const pb::Message& message) {
  if (message.GetDescriptor() != Message::descriptor()) return;
  const auto record = wl::from_proto(static_cast<const Message&>(message));
  if (!record.ok()) WL_CHECK(!record.status().message().empty(), "an error without words");
}

template <typename... Messages>
void decode_as(const pb::Message& message) {
  (decode<Messages>(message), ...);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::mt19937_64 rng(seed);
  if (size < 2 || rng() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  if (rng() % 8 == 0) {
    data[0] = static_cast<uint8_t>(rng());
    data[1] = 0;
  }
  const std::unique_ptr<pb::Message> message = message_of(data, size);
  if (rng() % 8 == 0) {
    message->Clear();
    fill(*message, 0, rng);
  }
  for (uint64_t left = rng() % 4; left > 0; --left) change(*message, rng);
  const std::string bytes = message->SerializePartialAsString();
  if (bytes.size() + 2 > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data + 2, bytes.data(), bytes.size());
  return bytes.size() + 2;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  pb::SetLogHandler(nullptr);  // without this, protobuf prints an error for every string that is not UTF-8
  const std::unique_ptr<pb::Message> message = message_of(data, size);
  const absl::Status checked = wl::check_fields(*message);
  if (!checked.ok()) {
    WL_CHECK(absl::IsInvalidArgument(checked) && checked.message().find("message field") == 0, checked.ToString());
    return 0;
  }
  const std::unique_ptr<pb::Message> again(message->New());
  WL_CHECK(again->ParseFromString(message->SerializeAsString()) && wl::check_fields(*again).ok(), "not a second time");
  decode_as<v1::Source, v1::Problem, v1::Check, v1::Recipe, v1::Candidate, v1::Trial, v1::Batch, v1::Device,
            v1::TuneOptions, v1::KernelRecord, v1::JobResult, v1::Progress, v1::Job>(*message);
  return 0;
}
