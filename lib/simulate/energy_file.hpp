// SPDX-License-Identifier: MIT
#pragma once
// The "energy" of a machine's file: read with errors that name the place, and written. Internal.
//
//   read_energy(in, j["energy"], machine.energy);           // `in` has the first error, if there is one
//   out += energy_json(machine.energy);                     // ",\n  \"energy\": {..}", or nothing if no term is known
#include "../core/json.hpp"
#include "sdma/simulate/energy.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// "" if a term may have this value.
std::string refuse(Power, double value);
void read_energy(JsonReader&, const Json&, EnergyTerms&);
std::string energy_json(const EnergyTerms&);
/// Does another term include this one?
bool included(Power, const EnergyTerms&);
/// A line for each term, and one that says which are not there.
std::string energy_table(const EnergyTerms&);

}}}  // namespace sdma::v0_3::detail
