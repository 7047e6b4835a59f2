// Layers whose weights are stored in the same formats share a block's ops: one plan for each kind.
// A checkpoint may hold some layers in one format and some in another.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "model/weights.h"

namespace bascule {

using Formats = std::vector<WeightFormat>;

// What distinguishes the layers for a block.
inline Formats attention_formats(const LayerWeights& l) {
  const AttentionWeights& a = l.attention;
  return {a.q_a.w.format, a.q_b.w.format, a.kv_a.w.format, a.kv_b.w.format, a.o.w.format};
}
inline Formats indexer_formats(const LayerWeights& l) {
  return {l.indexer.wq_b.w.format, l.indexer.wk.w.format, l.indexer.weights_proj.w.format};
}
inline void add_formats(const MlpWeights& mlp, Formats& to) {
  to.insert(to.end(), {mlp.gate.w.format, mlp.up.w.format, mlp.down.w.format});
}
inline Formats dense_formats(const LayerWeights& l) {
  Formats formats;
  add_formats(l.dense, formats);
  return formats;
}
inline Formats expert_formats(const LayerWeights& l) {
  Formats formats = {l.router.w.format};
  for (const MlpWeights& expert : l.experts) add_formats(expert, formats);
  add_formats(l.shared, formats);
  return formats;
}

// A block for each kind of layer, and which layer has which.
template <typename Block>
class LikeLayers {
 public:
  // `has(layer)`: whether it has such a block; make(layer, n_layers) plans one for a kind.
  template <typename Has, typename Key, typename Make>
  LikeLayers(const std::vector<LayerWeights>& layers, Has has, Key key, Make make) {
    std::vector<Formats> kinds;
    std::vector<const LayerWeights*> first;
    for (const LayerWeights& layer : layers) {
      kind_of_.push_back(-1);
      if (!has(layer)) continue;
      const Formats formats = key(layer);
      kind_of_.back() = int(std::find(kinds.begin(), kinds.end(), formats) - kinds.begin());
      if (size_t(kind_of_.back()) < kinds.size()) continue;
      kinds.push_back(formats);
      first.push_back(&layer);
    }
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      blocks_.push_back(
          make(*first[kind], double(std::count(kind_of_.begin(), kind_of_.end(), int(kind)))));
  }

  const Block* of(int64_t layer) const {  // null where the layer has none
    const int kind = kind_of_[size_t(layer)];
    return kind < 0 ? nullptr : &blocks_[size_t(kind)];
  }

 private:
  std::vector<Block> blocks_;
  std::vector<int> kind_of_;  // [n_layers]
};

}  // namespace bascule
