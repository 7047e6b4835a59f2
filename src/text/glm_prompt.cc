#include "text/glm_prompt.h"

#include <algorithm>

namespace bascule {
namespace {

// As the template trims an answer.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

std::optional<GlmPrompt> GlmPrompt::of(const Tokenizer& tokenizer) {
  GlmPrompt prompt;
  prompt.tokenizer_ = &tokenizer;
  const std::pair<const char*, int32_t*> tokens[] = {{"[gMASK]", &prompt.mask_},
                                                     {"<sop>", &prompt.start_},
                                                     {"<|system|>", &prompt.system_},
                                                     {"<|user|>", &prompt.user_},
                                                     {"<|assistant|>", &prompt.assistant_},
                                                     {"<think>", &prompt.think_},
                                                     {"</think>", &prompt.think_end_}};
  for (const auto& [text, id] : tokens) {
    const std::optional<int32_t> found = tokenizer.id_of(text);
    if (!found) return {};
    *id = *found;
  }
  return prompt;
}

Status GlmPrompt::append(std::string_view text, std::vector<int32_t>& ids) const {
  BASCULE_TRY_ASSIGN(const std::vector<int32_t> more, tokenizer_->encode(text));
  ids.insert(ids.end(), more.begin(), more.end());
  return {};
}

Result<std::vector<int32_t>> GlmPrompt::encode(std::span<const Message> conversation,
                                               bool thinking) const {
  std::vector<int32_t> ids = {mask_, start_};
  if (thinking) {
    ids.push_back(system_);
    BASCULE_TRY(append("Reasoning Effort: Max", ids));
  }
  for (const Message& message : conversation) {
    switch (message.role) {
      case Role::kSystem:
        ids.push_back(system_);
        break;
      case Role::kUser:
        ids.push_back(user_);
        break;
      case Role::kAssistant:
        ids.insert(ids.end(), {assistant_, think_, think_end_});
        break;
    }
    const bool is_answer = message.role == Role::kAssistant;
    BASCULE_TRY(append(is_answer ? trimmed(message.text) : message.text, ids));
  }
  ids.insert(ids.end(), {assistant_, think_});
  if (!thinking) ids.push_back(think_end_);
  return ids;
}

}  // namespace bascule
