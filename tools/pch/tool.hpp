// Precompiled once for all verbs, because the command-line parser is most of each. Each source still includes what it uses, and
// builds without this header (-Db_pch=false).
#include "sdma/packets/registry.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
