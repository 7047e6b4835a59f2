// A digest of bytes that tells whether they are still the same: XXH3 of 128 bits, at memory speed.
// It finds accidents, not attacks: somebody who wants two texts of one digest can make them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bascule {

struct DigestValue {
  uint64_t high = 0, low = 0;

  bool operator==(const DigestValue&) const = default;
  std::string hex() const;  // 32 digits, as `xxh128sum` prints it
};

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(const void* data, int64_t size);
  DigestValue value() const;  // of all that was added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

DigestValue digest_of(std::string_view bytes);

}  // namespace bascule
