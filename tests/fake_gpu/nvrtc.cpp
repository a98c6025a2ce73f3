// NVRTC and hipRTC for the fake driver: replaces the prelude of a program by the simulator's, lets g++ make a shared
// object and wraps it as image.h describes. A line "// fault: NAME" in a kernel's text becomes the kernel's FAULT in
// the driver. Kernels whose text contains the value of WARPLOOM_FAKE_SPILL report that they spill registers, and trap
// if they are launched.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/prelude/prelude.h"
#include "tests/fake_gpu/image.h"
#include "tests/unit/file_text.h"

namespace {

enum Result { kOk = 0, kOutOfMemory = 1, kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6, kInternal = 11 };

struct Program {
  std::string text, log, code, ptx;
  bool hip = false;
};

struct Kernel {
  std::string entry, fault = "-", text;
  int arguments = 0;
  int spill = 0;          // bytes that a kernel spills per lane
  bool numbered = false;  // whether a workspace and the number of a pass follow the kernel's arguments
};

// Returns the kernels of a program, each with the text from its line `#line 1 "ENTRY"` to the next such line.
// *prelude_ends becomes the offset of the first such line.
std::vector<Kernel> kernels_of(const std::string& text, size_t* prelude_ends) {
  constexpr const char* kMark = "\n#line 1 \"wl_";
  std::vector<Kernel> kernels;
  *prelude_ends = text.find(kMark);
  for (size_t at = *prelude_ends; at != std::string::npos;) {
    const size_t next = text.find(kMark, at + 1);
    Kernel kernel;
    kernel.text = text.substr(at, next - at);
    const size_t quote = kernel.text.find('"') + 1;
    kernel.entry = kernel.text.substr(quote, kernel.text.find('"', quote) - quote);
    for (const char* parameter : {"WL_IN(", "WL_OUT(", "WL_ONCE(", "WL_PASSES("})
      for (size_t p = kernel.text.find(parameter); p != std::string::npos; p = kernel.text.find(parameter, p + 1))
        ++kernel.arguments;
    kernel.numbered = kernel.text.find("WL_PASSES(") != std::string::npos;
    constexpr const char* kFault = "// fault: ";
    if (const size_t fault = kernel.text.find(kFault); fault != std::string::npos) {
      std::istringstream word(kernel.text.substr(fault + std::strlen(kFault)));
      word >> kernel.fault;
    }
    if (const char* word = std::getenv("WARPLOOM_FAKE_SPILL"); word && kernel.text.find(word) != std::string::npos) {
      kernel.fault = "trap";
      kernel.spill = 4096;
    }
    kernels.push_back(std::move(kernel));
    at = next;
  }
  return kernels;
}

// Returns one 16-byte load, one 16-byte store and the end of the program in NVIDIA's encoding. A kernel's source
// promises the widths of its memory accesses, and a worker looks for accesses of these widths in the code.
std::string instructions() {
  std::string text;
  for (unsigned long opcode : {0x981UL, 0x986UL, 0x94dUL}) {
    const unsigned long words[2] = {opcode, 6UL << 9};
    text.append(reinterpret_cast<const char*>(words), sizeof words);
  }
  return text;
}

// Returns whether NVRTC (hipRTC if `hip`) accepts a compiler option. Only the options that Warploom uses are known.
bool is_option(std::string_view option, bool hip) {
  using List = std::vector<std::string_view>;
  static const List kBoth = {"--std=c++17", "-std=c++17", "-w"};
  static const List kCuda = {"--device-as-default-execution-space", "--device-int128", "--ptxas-options=-v",
                             "--minimal"};
  static const List kHip = {"-O3", "-ffp-contract=fast"};
  for (const List& list : {kBoth, hip ? kHip : kCuda})
    if (std::find(list.begin(), list.end(), option) != list.end()) return true;
  if (!hip) return option.starts_with("--gpu-architecture=sm_");
  // hipRTC ends the process for an architecture that its compiler, the code object manager (comgr.cpp), does not know.
  if (option.starts_with("--gpu-architecture=") && option != "--gpu-architecture=gfx90a") std::abort();
  return option == "--gpu-architecture=gfx90a";
}

// Returns how many registers a kernel uses and spills: as the report of ptxas or, if `hip`, as fields of the note of an
// AMD code object (MessagePack, in which a small number is one byte).
std::string facts_of(const Kernel& kernel, bool hip) {
  if (hip) {
    const char registers = 32, spilled = kernel.spill > 0 ? 127 : 0;
    return std::string("\xab.vgpr_count") + registers + "\xb1.vgpr_spill_count" + spilled;
  }
  const std::string spill = std::to_string(kernel.spill);
  return "ptxas info    : Compiling entry function '" + kernel.entry + "' for 'sm_90a'\n    0 bytes stack frame, " +
         spill + " bytes spill stores, " + spill + " bytes spill loads\nptxas info    : Used 32 registers\n";
}

int compile(Program& program, int count, const char* const* options) {
  for (int i = 0; i < count; ++i)
    if (!is_option(options[i], program.hip)) {
      program.log = std::string("fake: unrecognized option ") + options[i];
      return kInvalidOption;
    }
  if (program.text.find("// silent") != std::string::npos) return kInternal;
  size_t prelude_ends = 0;
  const std::vector<Kernel> kernels = kernels_of(program.text, &prelude_ends);
  if (kernels.empty()) {
    program.log = "fake: error: no kernel whose name starts with wl_";
    return kCompilation;
  }
  const char* folder = std::getenv("TMPDIR");
  std::string stem = std::string(folder != nullptr ? folder : "/tmp") + "/fake_nvrtc_XXXXXX";
  const int file = mkstemp(stem.data());
  if (file < 0) return kOutOfMemory;
  close(file);
  {
    std::ofstream out(stem + ".cpp");
    // The first lines of the program's prelude define the widths of vectors and waves, so they are kept.
    std::istringstream lines(program.text);
    for (std::string line; std::getline(lines, line) && line.starts_with("#define WL_");) out << line << "\n";
    out << wl::sim_prelude();
    // A kernel that is to fail may have text that this machine cannot compile, so the text is left out.
    for (const Kernel& kernel : kernels)
      if (kernel.fault == "-") out << kernel.text;
  }
  const std::string command = "g++ -std=c++17 -O1 -w -fwrapv -ffp-contract=fast -fno-math-errno -fPIC -shared -s -o " +
                              stem + ".so " + stem + ".cpp > " + stem + ".log 2>&1";
  const bool made = std::system(command.c_str()) == 0;
  program.log = wl::testing::file_text(stem + ".log");
  fake_gpu::Sections sections;
  std::string list, notes;
  for (const Kernel& kernel : kernels) {
    sections.emplace_back(program.hip ? ".text" : ".text." + kernel.entry, instructions());
    list +=
        kernel.entry + " " + std::to_string(kernel.arguments) + (kernel.numbered ? " 1 " : " 0 ") + kernel.fault + "\n";
    (program.hip ? notes : program.log) += facts_of(kernel, program.hip);
    program.ptx += ".visible .entry " + kernel.entry + "()\n{\n}\n";
  }
  sections.emplace_back(".wl.kernels", list);
  if (program.hip) sections.emplace_back(".note", notes);
  sections.emplace_back(".wl.object", made ? wl::testing::file_text(stem + ".so") : "");
  program.code = fake_gpu::make_image(sections, program.hip ? fake_gpu::kAmdGpu : fake_gpu::kCuda);
  for (const char* end : {"", ".cpp", ".so", ".log"}) unlink((stem + end).c_str());
  return made ? kOk : kCompilation;
}

int give(const std::string& text, char* out) {
  std::memcpy(out, text.data(), text.size());
  return 0;
}

}  // namespace

// WL_RTC(name without its library's prefix, parameters, body) defines a function that both libraries have.
#define WL_RTC(name, parameters, ...) \
  extern "C" int nvrtc##name parameters __VA_ARGS__ extern "C" int hiprtc##name parameters __VA_ARGS__

WL_RTC(Version, (int* major, int* minor), {
  *major = 13;
  *minor = 99;
  return kOk;
})
WL_RTC(CompileProgram, (void* program, int count, const char* const* options),
       { return compile(*static_cast<Program*>(program), count, options); })
WL_RTC(DestroyProgram, (void** program), {
  delete static_cast<Program*>(*program);
  return kOk;
})
WL_RTC(GetProgramLogSize, (void* program, size_t* bytes), {
  *bytes = static_cast<Program*>(program)->log.size();
  return kOk;
})
WL_RTC(GetProgramLog, (void* program, char* out), { return give(static_cast<Program*>(program)->log, out); })

namespace {

int create(void** out, const char* text, int headers, bool hip) {
  if (text == nullptr || headers != 0) return kInvalidInput;
  *out = new Program{text, "", "", "", hip};
  return kOk;
}

int code_size(void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->code.size();
  return kOk;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names of NVRTC and hipRTC
extern "C" {

int nvrtcCreateProgram(void** out, const char* text, const char*, int headers, const char* const*, const char* const*) {
  return create(out, text, headers, false);
}
int hiprtcCreateProgram(void** out, const char* text, const char*, int headers, const char* const*,
                        const char* const*) {
  return create(out, text, headers, true);
}
const char* nvrtcGetErrorString(int error) {
  return error == kInternal ? "NVRTC_ERROR_INTERNAL_ERROR" : "NVRTC_ERROR_OTHER";
}
const char* hiprtcGetErrorString(int error) {
  return error == kInternal ? "HIPRTC_ERROR_INTERNAL_ERROR" : "HIPRTC_ERROR_OTHER";
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return kOk;
}
int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 90;
  return kOk;
}
int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  return code_size(program, bytes);
}
int nvrtcGetCUBIN(void* program, char* out) {
  return give(static_cast<Program*>(program)->code, out);
}
int hiprtcGetCodeSize(void* program, size_t* bytes) {
  return code_size(program, bytes);
}
int hiprtcGetCode(void* program, char* out) {
  return give(static_cast<Program*>(program)->code, out);
}
int nvrtcGetPTXSize(void* program, size_t* bytes) {
  *bytes = static_cast<Program*>(program)->ptx.size();
  return kOk;
}
int nvrtcGetPTX(void* program, char* out) {
  return give(static_cast<Program*>(program)->ptx, out);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
