// What the server says of itself and of its model.
#pragma once

#include "serve/call.h"

namespace bascule {

void list_models(Call call);
void tokenize(Call call);
void detokenize(Call call);

}  // namespace bascule
