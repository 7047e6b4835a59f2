// POST /v1/completions: text or token ids, continued.
#pragma once

#include "serve/call.h"

namespace bascule {

void complete(Call call);

}  // namespace bascule
