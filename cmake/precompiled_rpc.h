// precompiled.h and the further headers that most sources with protobuf and gRPC include.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "cmake/precompiled.h"
#include "google/protobuf/message.h"
