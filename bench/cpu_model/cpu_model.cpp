#include <algorithm>
#include <iostream>
#include <string>

#include "bench/cpu_model/judge.h"
#include "bench/cpu_model/pipelining.h"
#include "bench/cpu_model/seeds.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

std::vector<CpuShape> all_shapes(const Target& target) {
  std::vector<CpuShape> out = micro_kernels(target);
  for (const auto& more : {calibration_shapes(), ranked_shapes(target)})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

absl::Status run(const std::vector<std::string>& args) {
  const std::string command = args.empty() ? "" : args[0];
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(describe_cpu()));
  const Target& target = *machine.target;
  const auto chosen = [&](size_t from) -> absl::StatusOr<std::vector<CpuShape>> {
    std::vector<CpuShape> out, known = all_shapes(target);
    for (CpuShape& shape : pipelined_shapes()) known.push_back(std::move(shape));
    for (size_t i = from; i < args.size(); ++i) {
      const size_t before = out.size();
      for (const CpuShape& shape : known)
        if (shape.name == args[i] ||
            (args[i].ends_with('*') && shape.name.starts_with(args[i].substr(0, args[i].size() - 1))))
          out.push_back(shape);
      if (out.size() == before)
        return invalid("no shape is called ", args[i], "; `cpu_model shapes` lists them, and pipelined_* are others");
    }
    return out;
  };
  if (command == "shapes") {
    // The command "shapes calibration" prints all shapes except those that the model ranks.
    const std::vector<CpuShape> ranked = args.size() > 1 ? ranked_shapes(target) : std::vector<CpuShape>();
    for (const CpuShape& shape : all_shapes(target))
      if (std::none_of(ranked.begin(), ranked.end(), [&](const CpuShape& r) { return r.name == shape.name; }))
        std::cout << shape.name << "\n";
    return absl::OkStatus();
  }
  if (command == "compile" && args.size() > 2) {
    WL_ASSIGN_OR_RETURN(const std::vector<CpuShape> shapes, chosen(2));
    return compile_shapes(shapes, args[1]);
  }
  if (command == "time" && args.size() > 3) {
    WL_ASSIGN_OR_RETURN(const std::vector<CpuShape> shapes, chosen(3));
    for (const CpuShape& shape : shapes) WL_RETURN_IF_ERROR(time_shape(shape, args[1], std::stoi(args[2])));
    return absl::OkStatus();
  }
  if (command == "pack" && args.size() == 3) return pack(all_shapes(target), args[1], args[2]);
  if ((command == "judge" || command == "fit" || command == "features") && args.size() == 2) {
    WL_ASSIGN_OR_RETURN(const CpuRecording recording, unpack(args[1]));
    WL_ASSIGN_OR_RETURN(const std::vector<JudgedShape> shapes, open_recording(recording));
    std::cout << (command == "judge" ? judge(shapes, recording)
                  : command == "fit" ? print(fit(shapes, recording))
                                     : features(shapes));
    return absl::OkStatus();
  }
  if ((command == "compile-seeds" || command == "time-seeds") && args.size() > 2) {
    const bool compile = command == "compile-seeds";
    WL_ASSIGN_OR_RETURN(const std::string table,
                        compare_seeds({args.begin() + 2, args.end()}, args[1], compile ? 0 : 30, compile));
    std::cout << table;
    return absl::OkStatus();
  }
  if (command == "pipelining" && args.size() == 2) {
    WL_ASSIGN_OR_RETURN(const std::string table, pipelining_table(args[1]));
    std::cout << table;
    return absl::OkStatus();
  }
  return invalid(
      "usage: cpu_model shapes | compile FOLDER SHAPE... | time FOLDER ROUNDS SHAPE... | pack FOLDER FILE | "
      "judge FILE | fit FILE | features FILE | pipelining FOLDER | compile-seeds FOLDER MODEL... | time-seeds FOLDER "
      "MODEL...");
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  const absl::Status status = wl::run({argv + 1, argv + argc});
  if (!status.ok()) std::cerr << "cpu_model: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
