#include "base/digest.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

// As `xxh128sum` of xxHash 0.8 prints it.
TEST(Digest, IsXxh3Of128Bits) {
  EXPECT_EQ(digest_of("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest_of("bascule").hex(), digest_of(std::string("bascule")).hex());
  EXPECT_NE(digest_of("bascule"), digest_of("bascula"));
}

TEST(Digest, IsTheSameInPieces) {
  std::string bytes(100'000, 'x');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i * i % 251);
  Digest digest;
  for (size_t at = 0; at < bytes.size(); at += 777)
    digest.add(bytes.data() + at, int64_t(std::min<size_t>(777, bytes.size() - at)));
  EXPECT_EQ(digest.value(), digest_of(bytes));
}

}  // namespace
}  // namespace bascule
