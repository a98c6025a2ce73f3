// precompiled.h and the further headers that most tests include.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "cmake/precompiled.h"
