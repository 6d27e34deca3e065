// SPDX-License-Identifier: MIT
#pragma once
// Places: where a process listens for stream sockets, as a text. Internal.
//
//   const auto listener = listen_at("node0:29500");        // or "@sdma-meet-7": a Unix socket without a file
//   const auto socket = connect_to("node0:29500", d);      // one attempt
//   place_of(listener->get())                              // ":29500", "@0001f"
//
//   place        of a listener                                          of a connection
//   HOST:PORT    all addresses of this host; if HOST is localhost or    the addresses of HOST, one after the other
//                begins with 127. or is ::1, that address alone
//   @NAME        that name. "@": any free one                           the same; only to and from the own user
//
// HOST may be in brackets, as an IPv6 address is. Descriptors are closed by exec; connections block, and listeners do
// not. Any thread. Errors: why, as one phrase. A connection ends at the deadline; the search for a host's address takes
// as long as the resolver needs.
#include "../core/descriptor.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"

#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// HOST:PORT with a port from 1 to 65535, or @NAME?
bool is_place(std::string_view) noexcept;

Result<Descriptor, std::string> listen_at(const std::string& place);
Result<Descriptor, std::string> connect_to(const std::string& place, Deadline);

/// What the system names the listener: "@NAME" or ":PORT".
std::string place_of(int listener);
/// The address of the other end, for HOST of a place; "": a Unix socket.
std::string host_of_peer(int socket);
/// Is it an address that only this host reaches?
bool is_loopback(std::string_view host) noexcept;
/// May its process send to this one? Unix sockets: if it is of the own user.
bool may_enter(int socket) noexcept;

/// Waits for the events of poll, at most until the deadline.
bool ready(int socket, short events, Deadline) noexcept;

}}}  // namespace sdma::v0_3::detail
