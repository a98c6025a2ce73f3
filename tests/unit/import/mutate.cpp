#include "tests/unit/import/mutate.h"

#include <limits>
#include <vector>

namespace wl::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

int64_t odd_integer(std::mt19937_64& rng) {
  static constexpr int64_t kOdd[] = {0,
                                     1,
                                     -1,
                                     2,
                                     -2,
                                     3,
                                     7,
                                     10,
                                     11,
                                     16,
                                     23,
                                     64,
                                     255,
                                     4096,
                                     1 << 20,
                                     int64_t{1} << 31,
                                     int64_t{1} << 40,
                                     -(int64_t{1} << 40),
                                     std::numeric_limits<int64_t>::max(),
                                     std::numeric_limits<int64_t>::min()};
  return kOdd[rng() % std::size(kOdd)];
}

void collect(Message& message, std::vector<Message*>& all) {
  all.push_back(&message);
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      collect(*reflection->MutableMessage(&message, field), all);
    } else {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        collect(*reflection->MutableRepeatedMessage(&message, field, i), all);
      }
    }
  }
}

void set_scalar(Message& message, const FieldDescriptor* field, int index, std::mt19937_64& rng) {
  const auto* reflection = message.GetReflection();
  const bool repeated = field->is_repeated();
  const int64_t integer = odd_integer(rng);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      repeated ? reflection->SetRepeatedInt32(&message, field, index, static_cast<int32_t>(integer))
               : reflection->SetInt32(&message, field, static_cast<int32_t>(integer));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      repeated ? reflection->SetRepeatedInt64(&message, field, index, integer)
               : reflection->SetInt64(&message, field, integer);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      repeated ? reflection->SetRepeatedFloat(&message, field, index, static_cast<float>(integer))
               : reflection->SetFloat(&message, field, static_cast<float>(integer));
      break;
    case FieldDescriptor::CPPTYPE_STRING: {
      static const std::string kWords[] = {"",          "x0",        "y0",    "x1",   "SAME_UPPER", "reflect",
                                           "ij,jk->ik", "...i,i...", "i->ii", "Conv", "Reshape",    "Slice",
                                           "Pad",       "Gather",    "axis",  "axes", "pads",       "ai.onnx"};
      const std::string& word = kWords[rng() % std::size(kWords)];
      repeated ? reflection->SetRepeatedString(&message, field, index, word)
               : reflection->SetString(&message, field, word);
      break;
    }
    default:
      break;
  }
}

void mutate_once(Message& root, std::mt19937_64& rng) {
  std::vector<Message*> all;
  collect(root, all);
  Message& message = *all[rng() % all.size()];
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  if (fields.empty()) return;
  const auto* field = fields[rng() % fields.size()];
  if (rng() % 8 == 0) return reflection->ClearField(&message, field);
  const bool inner = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!field->is_repeated()) {
    if (!inner) set_scalar(message, field, 0, rng);
    return;
  }
  const int size = reflection->FieldSize(message, field);
  const int at = static_cast<int>(rng() % static_cast<uint64_t>(size));
  switch (rng() % 4) {
    case 0:
      reflection->RemoveLast(&message, field);
      break;
    case 1:
      reflection->SwapElements(&message, field, at, size - 1);
      break;
    case 2:
      if (inner) {
        reflection->AddMessage(&message, field)->CopyFrom(reflection->GetRepeatedMessage(message, field, at));
        break;
      }
      [[fallthrough]];
    default:
      if (!inner) set_scalar(message, field, at, rng);
  }
}

}  // namespace

void mutate(Message& message, int count, std::mt19937_64& rng) {
  for (int i = 0; i < count; ++i) mutate_once(message, rng);
}

void mutate_bytes(std::string& bytes, int count, std::mt19937_64& rng) {
  for (int i = 0; i < count && !bytes.empty(); ++i) {
    const size_t at = rng() % bytes.size();
    switch (rng() % 4) {
      case 0:
        bytes[at] = static_cast<char>(rng());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng() % 8));
        break;
      case 2:
        bytes.erase(at, 1 + rng() % 4);
        break;
      default:
        bytes.insert(at, bytes.substr(rng() % bytes.size(), 1 + rng() % 8));
    }
  }
}

}  // namespace wl::testing
