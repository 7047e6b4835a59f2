// POST /v1/chat/completions: a conversation, answered.
#pragma once

#include "serve/call.h"

namespace bascule {

void chat(Call call);

}  // namespace bascule
