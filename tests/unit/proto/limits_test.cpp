// Messages from other processes and bytes from a store become a record only if every name and size is within its
// limits.
#include "proto/limits.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "proto/protocol.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/proto/random_records.h"
#include "warploom/v1/worker.pb.h"

namespace wl::testing {
namespace {

namespace pb = ::google::protobuf;
using ::testing::HasSubstr;
using namespace std::string_literals;

std::string refusal(const absl::Status& status) {
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

// Changes a record that is valid otherwise, corrects its digest, and returns the error of converting it from a message.
std::string refusal_of_record(const std::function<void(KernelRecord&)>& change) {
  Random r(3);
  KernelRecord record = random_record(r);
  record.problem.buffers.emplace_back();
  record.digest = record_digest(record);
  EXPECT_TRUE(from_proto(to_proto(record)).ok()) << from_proto(to_proto(record)).status();
  change(record);
  record.digest = record_digest(record);
  return refusal(from_proto(to_proto(record)).status());
}

TEST(Limits, NoNameOfARecordIsAPath) {
  for (const std::string& entry : {"../../x"s, "/etc/x"s, "x/y"s, ".."s, "x.so"s, "x\0.so"s, "9x"s, ""s, "x y"s, "x\n"s,
                                   "\xc3\xa4"s, std::string(200, 'x')}) {
    EXPECT_THAT(refusal_of_record([&](KernelRecord& x) { x.source.entry = entry; }), HasSubstr("Source.entry"));
  }
  const std::string upper(64, 'A'), path = "../../" + std::string(58, 'a');
  for (const std::string& digest : {"abc"s, upper, path, std::string(65, 'a')}) {
    EXPECT_THAT(refusal_of_record([&](KernelRecord& x) { x.key = digest; }), HasSubstr("KernelRecord.key"));
    EXPECT_THAT(refusal_of_record([&](KernelRecord& x) { x.problem.key = digest; }), HasSubstr("Problem.key"));
    EXPECT_THAT(refusal_of_record([&](KernelRecord& x) { x.object_sha256 = digest; }), HasSubstr("object_sha256"));
  }
  EXPECT_THAT(refusal_of_record([](KernelRecord& x) { x.source.compiler = "gcc; rm -r /"; }),
              HasSubstr("Source.compiler"));
  EXPECT_THAT(refusal_of_record([](KernelRecord& x) { x.source.target = "cpu\n"; }), HasSubstr("Source.target"));
  EXPECT_THAT(refusal_of_record([](KernelRecord& x) { x.device.name = "AMD\x1b[2J"; }), HasSubstr("Device.name"));
  EXPECT_THAT(refusal_of_record([](KernelRecord& x) { x.device.name = "\xc2\x9b"; }), HasSubstr("Device.name"));
  EXPECT_THAT(refusal_of_record([](KernelRecord& x) { x.problem.buffers[0].name = "a\0b"s; }),
              HasSubstr("BufferSpec.name"));
  EXPECT_THAT(refusal_of_record([](KernelRecord& x) { x.environment = "\xff"; }), HasSubstr("environment"));
  EXPECT_EQ(refusal_of_record([](KernelRecord& x) { x.source.entry = "../../x"; }),
            "message field Source.entry: expected a C identifier of at most 128 bytes, found \"../../x\"");
}

TEST(Limits, NamesOfModelsAreKept) {
  Random r(5);
  for (const char* name : {"/encoder/layer.0/attention/MatMul_output_0", "onnx::MatMul_123", "x y", "größe", "入力"}) {
    KernelRecord record = random_record(r);
    record.problem.buffers.push_back({name, DType::f32, {3}, false, {}, 0});
    record.digest = record_digest(record);
    EXPECT_TRUE(from_proto(to_proto(record)).ok()) << from_proto(to_proto(record)).status();
  }
}

TEST(Limits, TooMuchIsRefusedAndSaysWhere) {
  Random r(7);
  const auto trial = [&](const std::function<void(v1::Trial&)>& change) {
    v1::Trial message = to_proto(random_trial(r));
    change(message);
    return refusal(from_proto(message).status());
  };
  EXPECT_THAT(trial([](v1::Trial& x) { x.set_message(std::string(1 << 20, 'x')); }), HasSubstr("Trial.message"));
  EXPECT_THAT(trial([](v1::Trial& x) { x.set_plan(std::string(1 << 20, 'x')); }), HasSubstr("Trial.plan"));
  EXPECT_THAT(trial([](v1::Trial& x) { x.mutable_samples_ns()->Resize(100'000, 1); }), HasSubstr("Trial.samples_ns"));
  EXPECT_THAT(trial([](v1::Trial& x) { x.add_samples_ns(-1); }), HasSubstr("Trial.samples_ns"));
  EXPECT_THAT(trial([](v1::Trial& x) { x.set_compile_s(std::nan("")); }), HasSubstr("Trial.compile_s"));
  EXPECT_THAT(trial([](v1::Trial& x) { x.set_trial(-1); }), HasSubstr("Trial.trial"));

  v1::Problem problem;
  for (int i = 0; i < 5000; ++i) problem.add_buffers()->set_dtype("f32");
  EXPECT_EQ(refusal(from_proto(problem).status()),
            "message field Problem.buffers: expected at most 4096 items, found 5000");
  v1::TuneOptions options;
  *options.mutable_device() = to_proto(random_device(r));
  options.mutable_device()->set_details(std::string(1 << 20, 'x'));
  EXPECT_THAT(refusal(from_proto(options).status()), HasSubstr("Device.details"));
}

// Calls visit for every string field of a message and of the messages inside it.
void each_text(pb::Message* message, const std::function<void(pb::Message*, const pb::FieldDescriptor*, int)>& visit) {
  const pb::Reflection* has = message->GetReflection();
  for (int f = 0; f < message->GetDescriptor()->field_count(); ++f) {
    const pb::FieldDescriptor* field = message->GetDescriptor()->field(f);
    const bool list = field->is_repeated();
    const int count = list ? has->FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
        visit(message, field, list ? i : -1);
      } else if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE &&
                 (list || has->HasField(*message, field))) {
        each_text(list ? has->MutableRepeatedMessage(message, field, i) : has->MutableMessage(message, field), visit);
      }
    }
  }
}

template <typename Message>
int expect_every_text_checked(Message message) {
  int texts = 0;
  each_text(&message, [&](pb::Message* part, const pb::FieldDescriptor* field, int i) {
    const pb::Reflection* has = part->GetReflection();
    const std::string before = i < 0 ? has->GetString(*part, field) : has->GetRepeatedString(*part, field, i);
    const auto set = [&](const std::string& text) {
      i < 0 ? has->SetString(part, field, text) : has->SetRepeatedString(part, field, i, text);
    };
    for (const std::string& bad : {"a\0b"s, std::string(20 << 20, 'a')}) {
      set(bad);
      const auto record = from_proto(message);
      EXPECT_FALSE(record.ok()) << field->full_name();
      EXPECT_THAT(std::string(record.status().message()), HasSubstr(field->name())) << field->full_name();
    }
    set(before);
    ++texts;
  });
  EXPECT_TRUE(from_proto(message).ok()) << "the message is right again";
  return texts;
}

TEST(Limits, EveryTextOfEveryRecordIsChecked) {
  Random r(11);
  int texts = 0;
  texts += expect_every_text_checked(to_proto(random_record(r)));
  texts += expect_every_text_checked(to_proto(random_batch(r)));
  texts += expect_every_text_checked(to_proto(random_result(r)));
  texts += expect_every_text_checked(to_proto(random_trial(r)));
  texts += expect_every_text_checked(to_proto(random_options(r)));
  texts += expect_every_text_checked(to_proto(random_progress(r)));
  EXPECT_GT(texts, 50);
}

TEST(Limits, RequestsAreCheckedToo) {
  v1::ReportResultsRequest report;
  auto* item = report.add_items();
  item->set_lease_id("00ff");
  EXPECT_TRUE(check_fields(report).ok());
  for (int i = 0; i < 5000; ++i) item->add_trials();
  EXPECT_THAT(refusal(check_fields(report)), HasSubstr("ReportResultsRequest.Item.trials"));
  v1::CreateTuningJobRequest create;
  create.set_request_id("00aaa2f5-941d-4d88-86e1-eaed46b2365f");
  create.set_label("model.onnx");
  EXPECT_TRUE(check_fields(create).ok());
  create.set_label(std::string(40 << 20, 'x'));
  EXPECT_THAT(refusal(check_fields(create)), HasSubstr("CreateTuningJobRequest.label"));
  create.set_label("a\nb");
  EXPECT_THAT(refusal(check_fields(create)), HasSubstr("CreateTuningJobRequest.label"));
  v1::RegisterWorkerRequest worker;
  EXPECT_EQ(refusal(check_fields(worker)), "message field RegisterWorkerRequest.name: expected a value, found none");
}

// A store may contain labels and error messages that were written before there were limits and exceed them. They are
// cut when they are sent.
TEST(Limits, WhatIsForPeopleIsCutWhenItIsSent) {
  Job job;
  job.name = "jobs/1";
  job.state = JobState::kFailed;
  job.label = "a\nb" + std::string(40 << 20, 'x');
  job.error = absl::InternalError("\xff" + std::string(40 << 20, 'y'));
  const v1::Job message = to_proto(job);
  EXPECT_LT(message.ByteSizeLong(), 32 << 10);
  const auto back = from_proto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->label, HasSubstr("a?bxxx"));
  Trial trial;
  trial.message = std::string(40 << 20, 'z');
  EXPECT_TRUE(from_proto(to_proto(trial)).ok());
}

bool is_identifier(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c == '_' || (c < 128 && std::isalnum(c) != 0); });
}
bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}
bool is_name(const std::string& text) {
  return text.size() <= kMostName && std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < 32; });
}

void expect_legal(const Source& source) {
  EXPECT_TRUE(is_identifier(source.entry)) << source.entry;
  EXPECT_TRUE(is_name(source.target) && is_name(source.compiler));
}
void expect_legal(const Device& device) {
  EXPECT_TRUE(is_name(device.target) && is_name(device.name) && is_name(device.compiler_versions));
  for (const std::string& compiler : device.compilers) EXPECT_TRUE(is_name(compiler));
}

TEST(Limits, MutatedMessagesGiveNoIllegalNames) {
  const uint64_t first = test_seed(1);
  // Logging is turned off, because protobuf logs every string that is not valid UTF-8.
  pb::LogHandler* const logged = pb::SetLogHandler(nullptr);
  int64_t accepted = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(scaled(20'000)); ++seed) {
    Random r(seed);
    const auto device = decode_device(mutated(encode(random_device(r)), r));
    if (device.ok()) expect_legal(*device);
    const auto batch = decode_batch(mutated(encode(random_batch(r)), r));
    if (batch.ok()) {
      for (const Candidate& candidate : batch->candidates) expect_legal(candidate.source);
      for (const BufferSpec& buffer : batch->problem.buffers) EXPECT_TRUE(is_name(buffer.name));
      EXPECT_TRUE(batch->problem.key.empty() || is_digest(batch->problem.key));
    }
    const auto result = decode_result(mutated(encode(random_result(r)), r));
    if (result.ok()) {
      for (const ResultBuffer& buffer : result->buffers) EXPECT_TRUE(is_name(buffer.name));
      for (const GroupResult& group : result->groups)
        EXPECT_TRUE(group.record_digest.empty() || is_digest(group.record_digest));
      expect_legal(result->device);
    }
    // A mutated record hardly ever keeps a valid digest, so decode_record() refuses nearly all of them.
    const auto record = decode_record(mutated(encode(random_record(r)), r));
    if (record.ok()) expect_legal(record->source);
    accepted += device.ok() + batch.ok() + result.ok() + record.ok();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  pb::SetLogHandler(logged);
  EXPECT_GT(accepted, 0) << "every mutation was refused";
}

// Every double of every message must be at least 0 and not NaN, unless the table of limits gives it another range.
TEST(Limits, HoldForEveryNumberOfSamplesAndTimes) {
  int fields = 0;
  for (const google::protobuf::FileDescriptor* file : protocol_files()) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      const google::protobuf::Descriptor* const type = file->message_type(i);
      for (int k = 0; k < type->field_count(); ++k) {
        const google::protobuf::FieldDescriptor* const field = type->field(k);
        if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE || type->name() == "Fill") continue;
        for (const double wrong : {std::nan(""), -1.0, -HUGE_VAL}) {
          const std::unique_ptr<google::protobuf::Message> message(
              google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
          const auto& has = *message->GetReflection();
          if (field->is_repeated())
            has.AddDouble(message.get(), field, wrong);
          else
            has.SetDouble(message.get(), field, wrong);
          // The check may report an error of another field first, since other required fields are missing.
          const absl::Status status = check_fields(*message);
          EXPECT_FALSE(status.ok()) << field->full_name() << " " << wrong;
        }
        ++fields;
      }
    }
  }
  EXPECT_GT(fields, 30);
}

}  // namespace
}  // namespace wl::testing
