// Text from outside, made safe to put into a message: names from files, values from clients.
#pragma once

#include <string>
#include <string_view>

namespace bascule {

// The text in double quotes; control characters, quotes and bytes that are not UTF-8 escaped, long
// text cut after about `max_bytes` with its full length told.
std::string in_quotes(std::string_view text, size_t max_bytes = 200);

}  // namespace bascule
