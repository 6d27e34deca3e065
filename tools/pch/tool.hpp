// Read once for all verbs, by precompilation: the parser of command lines is most of each. Each source still includes what it
// uses, and builds without this (-Db_pch=false).
#include "sdma/packets/registry.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
