// precompiled.h, and headers that tests include besides.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "cmake/precompiled.h"
