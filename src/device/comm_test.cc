#include "device/comm.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace bascule {
namespace {

void on_each_rank(int size, const std::function<void(Comm&)>& body) {
  auto comms = make_local_comms(size);
  std::vector<std::thread> threads;
  for (auto& comm : comms) threads.emplace_back([&body, &comm] { body(*comm); });
  for (std::thread& t : threads) t.join();
}

TEST(LocalComm, GathersUnevenColumns) {
  const std::vector<int64_t> first = {0, 2, 2, 7};
  on_each_rank(3, [&](Comm& comm) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::byte> data(3 * 7);
      const auto all = View<std::byte, 2>::packed(data.data(), {3, 7});
      const auto value = [&](int64_t row, int64_t c) {
        return std::byte(31 * round + 7 * row + c);
      };
      for (int64_t row = 0; row < 3; ++row)
        for (int64_t c = first[comm.rank()]; c < first[comm.rank() + 1]; ++c)
          all(row, c) = value(row, c);
      comm.gather_columns(all, first);
      for (int64_t row = 0; row < 3; ++row)
        for (int64_t c = 0; c < 7; ++c) EXPECT_EQ(all(row, c), value(row, c));
    }
  });
}

TEST(LocalComm, GathersRowsOfAnyType) {
  const std::vector<int64_t> first = {0, 1, 4};
  on_each_rank(2, [&](Comm& comm) {
    std::vector<std::byte> data(4 * 5, std::byte{0xff});
    const auto all = View<std::byte, 2>::packed(data.data(), {4, 5});
    for (int64_t row = first[comm.rank()]; row < first[comm.rank() + 1]; ++row)
      for (int64_t c = 0; c < 5; ++c) all(row, c) = std::byte(row * 5 + c);
    comm.gather_rows(all, first);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(int(data[i]), i);
  });
}

TEST(LocalComm, CollectsRowsFromTheirOwners) {
  std::vector<int32_t> owner = {1, 0, -1, 2, 0, 2};
  on_each_rank(3, [&](Comm& comm) {
    std::vector<float> data(6 * 2, -1);
    const auto rows = View<float, 2>::packed(data.data(), {6, 2});
    for (int64_t i = 0; i < 6; ++i)
      if (owner[i] == comm.rank()) rows(i, 0) = rows(i, 1) = float(i);
    const int64_t begin = comm.rank() * 2, end = begin + 2;
    comm.collect_rows(rows, View<const int32_t, 1>::packed(owner.data(), {6}), begin, end);
    for (int64_t i = begin; i < end; ++i) EXPECT_EQ(rows(i, 1), float(owner[i] < 0 ? -1 : i));
  });
}

}  // namespace
}  // namespace bascule
