// Decides which devices of workers can do the measurements of which jobs. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

// Whether a worker's device can do the measurements of a job whose device is `wanted`. It must be the same machine
// with the same compilers (and with the same library, if the job uses one), and must have the same target or run code
// for it.
bool serves(const Device& worker, const Device& wanted);
bool any_serves(const std::vector<Device>& worker, const Device& wanted);
// Whether one of the devices may be the same machine as `device`: a worker with one may do what is for the other.
bool is_in_use(const std::vector<Device>& in_use, const Device& device);
// Returns the class of a device: devices of one class serve the same batches of a team.
std::string class_of(const Device& device, const std::string& team);
// Whether a worker of the team `worker` serves jobs of the team `wanted`; a worker without a team ("") serves all jobs.
bool serves_team(const std::string& worker, const std::string& wanted);
// Returns the device as seen by a job that allows `libraries` (TuneOptions::libraries): without a library that the job
// does not allow. Returns nullopt if the device lacks the library that the job asks for.
std::optional<Device> device_with(const Device& device, const std::string& libraries);
// Returns the device with `target` in place of its own target; nullopt if the device cannot run code for that target.
std::optional<Device> device_as(const Device& device, const std::string& target);

}  // namespace wl
