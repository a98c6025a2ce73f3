// precompiled.h, and headers that sources with protobuf and gRPC include besides.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "cmake/precompiled.h"
#include "google/protobuf/message.h"
