// SPDX-License-Identifier: MIT
#pragma once
// What a run shows about the fields of packets that are only inferred (docs/packets.md).
//
//   const Json all = inferred_fields(answer["works"]);   // [{"field": "fill.policy", "state": "accepted", ...}, ...]
//
//   state        a field
//   confirmed    a trial whose bytes depend on its value has passed
//   accepted     a packet with a value in it has left the right bytes; what the value changes was not seen
//   wrong        a trial of it failed or hung
//   not tried    no trial of it has run
// Which fields are inferred follows from the catalogue of packets. Nothing throws on an answer of `meet`.
#include "json/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sdma::tool::contact {

/// Packets that `works` sends once more, with a value in each inferred field for a cache policy.
std::vector<std::string_view> with_policies();

/// `works`: the results of that step. In the order of the catalogue.
json::Json inferred_fields(const json::Json& works);

/// The name of a trial before ", an engine facing ...".
std::string with_policy(std::string_view packet);

}  // namespace sdma::tool::contact
