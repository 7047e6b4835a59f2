#include "device/buffer.h"

#include <gtest/gtest.h>

namespace bascule {
namespace {

TEST(Buffer, IsZeroAndCostsOnlyWhatIsTouched) {
  const int64_t size_bytes = int64_t{1} << 40;  // more than the machine has
  Result<Buffer> buffer = Buffer::reserve(size_bytes, "test");
  if (!buffer.ok()) {  // a machine that refuses to overcommit says so
    EXPECT_EQ(buffer.status().code(), Code::kResourceExhausted);
    return;
  }
  EXPECT_EQ(buffer->data()[size_bytes - 1], std::byte{0});
  buffer->data()[size_bytes - 1] = std::byte{7};
  EXPECT_EQ(buffer->data()[size_bytes - 1], std::byte{7});
}

TEST(Buffer, SaysWhatDidNotFit) {
  const Result<Buffer> buffer = Buffer::reserve(int64_t{1} << 60, "KV cache");
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(buffer.status().message().starts_with(
      "KV cache: the system gives no 1152921504606846976 bytes"));
}

TEST(Buffer, MovesOwnership) {
  Buffer a = Buffer::reserve(4096, "a").value();
  std::byte* const data = a.data();
  Buffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace bascule
