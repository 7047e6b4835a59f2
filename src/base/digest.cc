#include "base/digest.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace bascule {

struct Digest::State {
  alignas(64) XXH3_state_t xxh;
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(const void* data, int64_t size) {
  XXH3_128bits_update(&state_->xxh, data, static_cast<size_t>(size));
}

DigestValue Digest::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.high64, hash.low64};
}

std::string DigestValue::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

DigestValue digest_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

}  // namespace bascule
