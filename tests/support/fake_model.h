// A model for tests of scheduling: no weights, but a cache like a real one. Each token writes its
// id and position into its slot and reads the slots of its whole sequence back through the page
// table; the logits are a hash of what it read. A wrong page, position, order or batch thus gives
// another answer than FakeModel::answer(), which knows only the tokens.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "model/model.h"

namespace bascule {

class FakeModel final : public Model {
 public:
  struct Options {
    int64_t vocab_size = 97;
    int64_t page_size = 4;
    int64_t max_logit_rows = 64;
    // Reads every slot of the sequence, else the last one before (for timing the engine alone).
    bool reads_all = true;
    int32_t nan_token = -1;  // after it, every logit is NaN
  };
  struct Slot {
    int32_t token, position;
    uint64_t hash;  // of the tokens up to here
  };

  static int64_t page_bytes(const Options& o) { return o.page_size * int64_t{sizeof(Slot)}; }

  // pages: page 0 first, page_bytes() each.
  FakeModel(const Options& options, std::byte* pages)
      : o_(options), pages_(pages), logits_(size_t(o_.max_logit_rows * o_.vocab_size)) {}

  void copy_pages(std::span<const PageCopy> copies) override {
    for (const PageCopy& c : copies)
      std::memcpy(pages_ + c.to * page_bytes(o_), pages_ + c.from * page_bytes(o_),
                  size_t(page_bytes(o_)));
  }

  View<const float, 2> forward(const Batch& batch, Stream&) override {
    for (int64_t t = 0; t < batch.n_tokens(); ++t) write(batch, t);
    const auto logits =
        View<float, 2>::packed(logits_.data(), {batch.logit_rows.extent[0], o_.vocab_size});
    BASCULE_CHECK_LE(batch.logit_rows.extent[0], o_.max_logit_rows);
    for (int64_t i = 0; i < logits.extent[0]; ++i) {
      if (i > 0) BASCULE_CHECK_LT(batch.logit_rows(i - 1), batch.logit_rows(i));
      fill_row(batch, batch.logit_rows(i), logits[i].data);
    }
    if (batch.tap) show(batch);
    return logits;
  }

  // The most likely token after `tokens`.
  static int32_t next(std::span<const int32_t> tokens, int64_t vocab_size) {
    uint64_t hash = 0;
    for (const int32_t token : tokens) hash = extended(hash, token);
    std::vector<float> logits(static_cast<size_t>(vocab_size));
    fill(hash, logits.data(), vocab_size);
    return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  // The greedy answer of n tokens.
  static std::vector<int32_t> answer(std::vector<int32_t> prompt, int64_t n, int64_t vocab_size) {
    std::vector<int32_t> result;
    for (; n > 0; --n) {
      result.push_back(next(prompt, vocab_size));
      prompt.push_back(result.back());
    }
    return result;
  }

 private:
  static uint64_t mixed(uint64_t x) {  // the finaliser of MurmurHash3 (Appleby)
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
  }
  static uint64_t extended(uint64_t hash, int32_t token) {
    return mixed(hash * 31 + uint64_t(token) + 1);
  }
  static void fill(uint64_t hash, float* logits, int64_t vocab_size) {
    for (int64_t id = 0; id < vocab_size; ++id)
      logits[id] = float(mixed(hash + uint64_t(id) * 0x9e3779b97f4a7c15ULL) >> 40) * 0x1p-22f - 2;
  }
  void fill_row(const Batch& batch, int64_t t, float* logits) const {
    fill(slot(batch, t, batch.places.position(t))->hash, logits, o_.vocab_size);
    if (batch.tokens(t) == o_.nan_token)
      std::fill_n(logits, o_.vocab_size, std::numeric_limits<float>::quiet_NaN());
  }

  Slot* slot(const Batch& batch, int64_t token, int64_t position) const {
    const int32_t page =
        batch.places.page_table(batch.places.sequence(token), position / o_.page_size);
    BASCULE_CHECK_LE(0, page);
    return reinterpret_cast<Slot*>(pages_ + page * page_bytes(o_)) + position % o_.page_size;
  }

  void write(const Batch& batch, int64_t t) {
    const int64_t position = batch.places.position(t);
    uint64_t hash = 0;
    if (o_.reads_all) {
      for (int64_t p = 0; p < position; ++p) hash = extended(hash, read(batch, t, p).token);
    } else if (position > 0) {
      hash = read(batch, t, position - 1).hash;
    }
    const int32_t token = batch.tokens(t);
    *slot(batch, t, position) = {token, int32_t(position), extended(hash, token)};
  }
  const Slot& read(const Batch& batch, int64_t t, int64_t position) const {
    const Slot& s = *slot(batch, t, position);
    BASCULE_CHECK_EQ(s.position, position);  // unwritten, poisoned, or somebody else's
    return s;
  }

  // As if two layers had a residual stream of two columns: token and position.
  void show(const Batch& batch) {
    hidden_.resize(size_t(batch.n_tokens() * 2));
    const auto hidden = View<float, 2>::packed(hidden_.data(), {batch.n_tokens(), 2});
    for (int64_t t = 0; t < batch.n_tokens(); ++t) {
      hidden(t, 0) = float(batch.tokens(t));
      hidden(t, 1) = float(batch.places.position(t));
    }
    for (int64_t layer = 0; layer <= 2; ++layer) (*batch.tap)(layer, hidden);
  }

  Options o_;
  std::byte* pages_;
  std::vector<float> logits_, hidden_;
};

}  // namespace bascule
