#include "tests/emulated/device.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/base/fill.h"
#include "compiler/base/status.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "runtime/buffer.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/ir/outputs.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/gpu/code.h"

namespace wl::testing {
namespace {

// Returns why the emulator would execute a line of assembly wrongly, or "".
std::string misread(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  // Clang merges memory accesses to neighbouring elements into words at any address. The hardware allows this, but the
  // emulator accesses words of local memory only at multiples of four bytes.
  static const std::regex* const kLocalWord = new std::regex("ds_.*_b(32|64|96|128) .*offset:(\\d+).*");
  std::cmatch local;
  if (std::regex_match(line.begin(), line.end(), local, *kLocalWord) && std::stoi(local[2]) % 4 != 0)
    return "has words of local memory at multiples of four bytes alone";
  const bool mfma = absl::StartsWith(line, "v_mfma_"), wmma = absl::StartsWith(line, "v_wmma_");
  if (!mfma && !wmma) return "";
  const std::vector<absl::string_view> operands = absl::StrSplit(line, absl::MaxSplits(", ", 3));
  if (operands.size() < 4) return "";
  if (mfma && (operands[1].front() == 'a' || operands[2].front() == 'a'))
    return "reads factors of MFMA that are in accumulation registers from others";
  if (wmma && operands[3].front() != 'v') return "takes the constant first sums of a WMMA for a register";
  return "";
}

// Returns why the emulator would execute a kernel wrongly, or "".
std::string misread_of(const std::string& assembly) {
  // For a negative product of small magnitude, v_mul_hi_i32_i24 must return -1, but the emulator returns 0.
  if (absl::StrContains(assembly, "v_mul_hi_i32_i24")) return "computes v_mul_hi_i32_i24 wrongly";
  for (const absl::string_view line : absl::StrSplit(assembly, '\n'))
    if (std::string wrong = misread(line); !wrong.empty()) return wrong;
  return "";
}

}  // namespace

EmulatedDevice* EmulatedDevice::get() {
  static auto* const kDevice = [] {
    EmulatedDevice* made = nullptr;
    if (std::getenv("WARPLOOM_FAKE_EMU_SOCKET") == nullptr) return made;
    (void)signal(SIGPIPE, SIG_IGN);  // if the emulator crashes, the launch then fails with an error
    auto device = GpuDevice::open("hip:0");
    WL_CHECK(device.ok(), "the emulator's driver opens no device: ", device.status().ToString());
    made = new EmulatedDevice;
    made->device_ = *std::move(device);
    made->timer_ = GpuTimer::create(*made->device_).value();
    made->target_ = gpu_targets("hip").value().at(0);
    return made;
  }();
  return kDevice;
}

Machine EmulatedDevice::machine() const {
  return machine_named(target_);
}

absl::StatusOr<std::string> EmulatedDevice::compile(const Source& source) const {
  const Scratch folder;
  WL_ASSIGN_OR_RETURN(GpuUnit unit, compile_gpu({&source, 1}, folder.path("")));
  if (unit.kernels[0].spill_bytes > 0)
    return absl::OutOfRangeError(cat(unit.kernels[0].spill_bytes, " bytes are spilled, and no worker runs that"));
  if (const std::string wrong = misread_of(unit.kernels[0].assembly); !wrong.empty())
    return absl::OutOfRangeError(cat("the emulator ", wrong));
  return std::move(unit.binary);
}

absl::Status EmulatedDevice::put(const GpuBuffer& buffer, const std::string& bytes) const {
  if (bytes.empty()) return absl::OkStatus();
  return device_->check(device_->api().to_device(buffer.data(), bytes.data(), bytes.size()), "writing an argument");
}

// Launches a kernel once for each of `passes`. `buffers`: the kernel's arguments, then its workspace.
absl::Status EmulatedDevice::launch(const Source& source, const GpuKernel& kernel,
                                    const std::vector<GpuBuffer>& buffers, int64_t grid, int64_t passes) {
  std::vector<void*> values, arguments;
  for (const GpuBuffer& buffer : buffers) values.push_back(buffer.data());
  for (void*& value : values) arguments.push_back(&value);
  int pass = 0;
  arguments.push_back(&pass);
  for (; pass < passes; ++pass) WL_RETURN_IF_ERROR(kernel.launch(grid, source.threads, arguments));
  return absl::OkStatus();
}

absl::Status EmulatedDevice::run(const Source& source, const std::string& code, std::vector<Argument>& arguments) {
  WL_ASSIGN_OR_RETURN(const GpuKernel kernel, GpuKernel::load(*device_, code, source.entry, source.scratch_bytes));
  std::vector<GpuBuffer> buffers;
  for (const Argument& argument : arguments) {
    WL_ASSIGN_OR_RETURN(GpuBuffer buffer, GpuBuffer::create(*device_, static_cast<int64_t>(argument.bytes.size())));
    WL_RETURN_IF_ERROR(put(buffer, argument.bytes));
    buffers.push_back(std::move(buffer));
  }
  const std::string work =
      std::string(static_cast<size_t>(std::min(source.work_bytes, kCounterBytes)), '\0') +
      std::string(static_cast<size_t>(std::max<int64_t>(0, source.work_bytes - kCounterBytes)), '\xff');
  WL_ASSIGN_OR_RETURN(GpuBuffer workspace, GpuBuffer::create(*device_, source.work_bytes));
  WL_RETURN_IF_ERROR(put(workspace, work));
  buffers.push_back(std::move(workspace));
  // The emulator reports a time of 5 us for a launch, plus 1 ns for each instruction of a wave.
  WL_ASSIGN_OR_RETURN(const int64_t ns,
                      timer_.time([&] { return launch(source, kernel, buffers, 1, 1); }, [] {}, "running one block"));
  instructions_ = std::max<int64_t>(0, ns - 5000) * source.grid * source.passes;
  if (instructions_ > kMostInstructions)
    return absl::OutOfRangeError(
        cat(instructions_, " instructions of waves; at most ", kMostInstructions, " are executed"));
  for (size_t i = 0; i < arguments.size(); ++i) WL_RETURN_IF_ERROR(put(buffers[i], arguments[i].bytes));
  WL_RETURN_IF_ERROR(put(buffers.back(), work));
  WL_RETURN_IF_ERROR(launch(source, kernel, buffers, source.grid, source.passes));
  WL_RETURN_IF_ERROR(device_->wait([] {}, "running the kernel"));
  for (size_t i = 0; i < buffers.size(); ++i) {
    const absl::Status red = buffers[i].check_red_zones(*device_);
    if (!red.ok())
      return absl::Status(red.code(),
                          cat(i < arguments.size() ? cat("argument ", i) : "the workspace", ": ", red.message()));
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].output && !arguments[i].bytes.empty())
      WL_RETURN_IF_ERROR(device_->check(
          device_->api().to_host(arguments[i].bytes.data(), buffers[i].data(), arguments[i].bytes.size()),
          "reading an output"));
  return absl::OkStatus();
}

std::optional<std::string> run_group(EmulatedDevice& device, const Graph& group, const Source& source,
                                     const std::string& plan, uint64_t seed) {
  const std::vector<BufferSpec> specs = buffers_of(group);
  const auto expected = evaluate_outputs(group, generated_inputs(group, seed));
  if (!expected.ok()) return cat("the oracle fails: ", expected.status().ToString());
  const auto code = device.compile(source);
  const auto left_out = [&](const absl::Status& why) {
    if (absl::IsOutOfRange(why)) std::printf("left out: %s: %s\n", std::string(why.message()).c_str(), plan.c_str());
    return absl::IsOutOfRange(why);
  };
  if (left_out(code.status())) return std::nullopt;
  if (!code.ok()) return cat("does not compile: ", code.status().ToString());
  std::vector<EmulatedDevice::Argument> arguments;
  for (const BufferSpec& spec : specs) {
    std::string bytes(static_cast<size_t>(spec.bytes()), '\0');
    if (spec.output)
      poison(spec.dtype, bytes.data(), spec.elements());
    else
      fill_range(spec.fill, spec.dtype, seed, spec.stream, 0, static_cast<uint64_t>(spec.elements()), bytes.data());
    arguments.push_back({std::move(bytes), spec.output});
  }
  const absl::Status status = device.run(source, *code, arguments);
  if (left_out(status)) return std::nullopt;
  if (!status.ok()) return std::string(status.ToString());
  size_t output = 0;
  for (size_t b = 0; b < specs.size(); ++b) {
    if (!specs[b].output) continue;
    const std::string wrong = difference_of_output(specs[b], arguments[b].bytes.data(), (*expected)[output++]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace wl::testing
