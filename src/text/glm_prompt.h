// A conversation as token ids in GLM's format: control tokens by id, everything that a person or
// the model said as plain text, so that no text can forge a turn. What `bascule run` needs of the
// format; tools and the model's own template are no part of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace bascule {

enum class Role { kSystem, kUser, kAssistant };

struct Message {
  Role role = Role::kUser;
  std::string text;  // of an assistant: the answer, without its thinking
};

class GlmPrompt {
 public:
  // Empty where the vocabulary lacks one of GLM's control tokens. `tokenizer` must outlive it.
  static std::optional<GlmPrompt> of(const Tokenizer& tokenizer);

  // Ends where the model's answer begins: inside its thinking, or past it where that is off.
  Result<std::vector<int32_t>> encode(std::span<const Message> conversation, bool thinking) const;

  int32_t think_end() const { return think_end_; }  // </think>

 private:
  GlmPrompt() = default;
  Status append(std::string_view text, std::vector<int32_t>& ids) const;

  const Tokenizer* tokenizer_ = nullptr;
  int32_t mask_ = 0, start_ = 0, system_ = 0, user_ = 0, assistant_ = 0;
  int32_t think_ = 0, think_end_ = 0;
};

}  // namespace bascule
