#include "kernels/pages.h"

#include <sys/mman.h>

#include "kernels/row_test.h"

namespace bascule {
namespace {

// Twelve gigabytes of address space in which only the touched pages exist. Pages 8 GiB from the
// start have offsets that neither 32 bits of bytes nor 31 of elements can hold.
class FarPages : public testing::Test {
 protected:
  static constexpr int64_t kPageBytes = 1 << 20, kPages = 12 << 10, kWidth = 40, kPageSize = 4;

  void SetUp() override {
    data_ = mmap(nullptr, size_t(kPages * kPageBytes), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(data_, MAP_FAILED);
  }
  void TearDown() override { munmap(data_, size_t(kPages * kPageBytes)); }

  PagedCache cache() const {
    return {.data = data_,
            .dtype = Dtype::kF32,
            .page_bytes = kPageBytes,
            .page_size = kPageSize,
            .width = kWidth};
  }
  // Twelve positions of one sequence: far, near, farther.
  TokenPlaces places(const std::vector<int32_t>& position) {
    return {View<const int32_t, 1>::packed(position.data(), {int64_t(position.size())}),
            View<const int32_t, 1>::packed(sequence_.data(), {int64_t(position.size())}),
            View<const int32_t, 2>::packed(table_, {1, 3})};
  }
  // Rows x of all twelve positions, by a row of CacheWrite.
  void fill(const Kernel<CacheWrite>& row, Matrix& x) {
    const CacheWrite op = {.x = x.view<float>(), .cache = cache(), .places = places(all_)};
    run_row(row, op);
  }

  void* data_ = nullptr;
  const int32_t table_[3] = {8193, 2, int32_t(kPages) - 1};
  const std::vector<int32_t> sequence_ = std::vector<int32_t>(12, 0);
  const std::vector<int32_t> all_ = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
};

TEST_F(FarPages, AreWrittenWhereTheyLie) {
  Matrix x = Matrix::random(12, kWidth, Dtype::kF32, 1);
  for (const Kernel<CacheWrite>& row : registry().rows<CacheWrite>()) {
    const CacheWrite op = {.x = x.view<float>(), .cache = cache(), .places = places(all_)};
    if (row.refuses && row.refuses(op, Machine::detect())) continue;
    std::memset(cache().row(table_[0], 0), 0, size_t(kPageSize * kWidth * 4));
    fill(row, x);
    const auto* far = reinterpret_cast<const float*>(static_cast<char*>(data_) + 8193 * kPageBytes);
    EXPECT_EQ(far[kWidth + 3], x(1, 3)) << row.name;
  }
}

TEST_F(FarPages, AreReadByAttentionAndIndexer) {
  Matrix x = Matrix::random(12, kWidth, Dtype::kF32, 1);
  fill(registry().rows<CacheWrite>()[0], x);
  const std::vector<int32_t> last = {11};

  Matrix q = Matrix::random(1, 2 * 12, Dtype::kF32, 2),
         kv_b = Matrix::random(2 * 8, 36, Dtype::kF32, 3);
  Matrix expected(1, 2 * 4);
  const auto attend = [&](Matrix& o) {
    return SparseMla{.q = {q.view<float>().data, {1, 2, 8}, {16, 8, 1}},
                     .kv_b = kv_b.tensor(),
                     .cache = cache(),
                     .places = places(last),
                     .selected = View<const int32_t, 2>::packed(all_.data(), {1, 12}),
                     .d_nope = 4,
                     .d_rope = 4,
                     .d_v = 4,
                     .scale = 0.1f,
                     .o = o.tensor()};
  };
  for (const Kernel<SparseMla>* row : rows_for(attend(expected))) {
    Matrix o(1, 2 * 4);
    run_row(*row, attend(o));
    if (row->grade == Grade::kReference && std::isnan(expected(0, 0))) expected = o;
    expect_close(o, expected, row->name);
  }

  // The query is the key of position 1, on the far page: it finds itself.
  Matrix key(1, kWidth), one(1, 1);
  for (int64_t i = 0; i < kWidth; ++i) key.set(0, i, x(1, i));
  one.set(0, 0, 1);
  int32_t selected = -7;
  const SelectKeys select = {.q = {key.view<float>().data, {1, 1, kWidth}, {kWidth, kWidth, 1}},
                             .weights = one.view<float>(),
                             .keys = cache(),
                             .places = places(last),
                             .selected = View<int32_t, 2>::packed(&selected, {1, 1}),
                             .max_context = 12};
  for (const Kernel<SelectKeys>* row : rows_for(select)) {
    selected = -7;
    run_row(*row, select);
    EXPECT_EQ(selected, 1) << row->name;
  }
}

}  // namespace
}  // namespace bascule
