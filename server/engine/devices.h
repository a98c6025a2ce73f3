// Which worker's device can do a job's work. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

// Whether a worker's device serves a job for `wanted`: the same machine with the same compilers and the same library,
// if the job uses one, under the same target or under one that the machine can run as well.
bool serves(const Device& worker, const Device& wanted);
bool any_serves(const std::vector<Device>& worker, const Device& wanted);
// Devices of one class serve the same batches of a team.
std::string class_of(const Device& device, const std::string& team);
// Whether a worker of one team, "" for none, serves jobs of the other.
bool serves_team(const std::string& worker, const std::string& wanted);
// The device as a job sees it that allows these libraries, a value of TuneOptions::libraries: without what it does not
// allow; nullopt when the device has not what it asks for.
std::optional<Device> device_with(const Device& device, const std::string& libraries);
// The device described for `target`; nullopt when it cannot run that target.
std::optional<Device> device_as(const Device& device, const std::string& target);

}  // namespace wl
