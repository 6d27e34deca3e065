// SPDX-License-Identifier: MIT
// Precompiled once for all sources of the library, which then build in two thirds of the time. Each source still
// includes what it uses, and builds without this header (-Db_pch=false).
#include "sdma/packets/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
