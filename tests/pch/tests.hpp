// SPDX-License-Identifier: MIT
// Read once for all tests of a folder, by precompilation. Each source
// still includes what it uses, and builds without this (-Db_pch=false).
#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>
