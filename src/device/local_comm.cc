// Ranks as threads of one process: a rank publishes where its buffer lies, all wait, each copies
// what it lacks from its peers' buffers, all wait again.
#include <barrier>
#include <cstring>

#include "base/check.h"
#include "device/comm.h"

namespace bascule {
namespace {

struct Group {
  explicit Group(int size) : barrier(size), buffers(size) {}
  std::barrier<> barrier;
  std::vector<void*> buffers;  // by rank; written before a barrier, read after it
};

class LocalComm final : public Comm {
 public:
  LocalComm(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return int(group_->buffers.size()); }

  void gather_columns(View<std::byte, 2> all, std::span<const int64_t> first) override {
    BASCULE_CHECK_EQ(int(first.size()), size() + 1);
    exchange(all.data, [&](int peer, const void* buffer) {
      const int64_t width = first[peer + 1] - first[peer];
      for (int64_t row = 0; row < all.extent[0] && width > 0; ++row) {
        const int64_t at = row * all.stride[0] + first[peer];
        std::memcpy(all.data + at, static_cast<const std::byte*>(buffer) + at, size_t(width));
      }
    });
  }

  void gather_rows(View<std::byte, 2> all, std::span<const int64_t> first) override {
    BASCULE_CHECK_EQ(int(first.size()), size() + 1);
    exchange(all.data, [&](int peer, const void* buffer) {
      const int64_t at = first[peer] * all.stride[0];
      const int64_t n_bytes = (first[peer + 1] - first[peer]) * all.stride[0];
      if (n_bytes > 0)
        std::memcpy(all.data + at, static_cast<const std::byte*>(buffer) + at, size_t(n_bytes));
    });
  }

  void collect_rows(View<float, 2> rows, View<const int32_t, 1> owner, int64_t begin,
                    int64_t end) override {
    exchange(rows.data, [&](int peer, const void* buffer) {
      const auto theirs = static_cast<const float*>(buffer);
      for (int64_t i = begin; i < end; ++i) {
        if (owner(i) != peer) continue;
        const int64_t at = i * rows.stride[0];
        std::memcpy(rows.data + at, theirs + at, size_t(rows.extent[1]) * sizeof(float));
      }
    });
  }

 private:
  // Calls copy(peer, buffer of peer) for every other rank while no rank changes its buffer.
  template <typename Copy>
  void exchange(void* mine, Copy copy) {
    if (size() == 1) return;
    group_->buffers[rank_] = mine;
    group_->barrier.arrive_and_wait();
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank_) copy(peer, group_->buffers[peer]);
    group_->barrier.arrive_and_wait();
  }

  std::shared_ptr<Group> group_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Comm>> make_local_comms(int size) {
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Comm>> comms;
  for (int rank = 0; rank < size; ++rank) comms.push_back(std::make_unique<LocalComm>(group, rank));
  return comms;
}

}  // namespace bascule
