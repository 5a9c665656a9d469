// The batching rules that rows name (batch="..." in ops/), and those of the families.
#pragma once
#include "op/def.h"

namespace facula::batch {

#define FACULA_BATCH_RULE(name) \
  void name(const OpDef&, const Value* args, Rets& rets, uint32_t level)

// families and patterns (rules_general.cpp)
FACULA_BATCH_RULE(elementwise);
FACULA_BATCH_RULE(reduction);
FACULA_BATCH_RULE(all);      // a reduction over everything, by its overload with a dim
FACULA_BATCH_RULE(dims);     // dims are shifted, sizes get the batch in front
FACULA_BATCH_RULE(leading);  // further leading dimensions are welcome and broadcast
FACULA_BATCH_RULE(core);     // leading dimensions in front of so many of each argument, all equal
FACULA_BATCH_RULE(loop);     // one call for each element
FACULA_BATCH_RULE(dynamic);  // refused: the result's shape depends on the data
// single operators
FACULA_BATCH_RULE(cat);
FACULA_BATCH_RULE(expand);
FACULA_BATCH_RULE(squeeze);
FACULA_BATCH_RULE(permute);
FACULA_BATCH_RULE(t);
FACULA_BATCH_RULE(as_strided);
FACULA_BATCH_RULE(as_strided_scatter);
FACULA_BATCH_RULE(unfold);
FACULA_BATCH_RULE(copy);
FACULA_BATCH_RULE(fill);
FACULA_BATCH_RULE(clone);
FACULA_BATCH_RULE(fill_value);
FACULA_BATCH_RULE(new_empty_strided);
FACULA_BATCH_RULE(mm);
FACULA_BATCH_RULE(mv);
FACULA_BATCH_RULE(dot);
FACULA_BATCH_RULE(addmm);
FACULA_BATCH_RULE(index);
FACULA_BATCH_RULE(index_put);
FACULA_BATCH_RULE(gather);
FACULA_BATCH_RULE(index_select);
FACULA_BATCH_RULE(select_scatter);
FACULA_BATCH_RULE(index_add);
FACULA_BATCH_RULE(index_copy);
FACULA_BATCH_RULE(index_fill);
FACULA_BATCH_RULE(take);
FACULA_BATCH_RULE(put);
FACULA_BATCH_RULE(masked_select);
FACULA_BATCH_RULE(masked_fill);
FACULA_BATCH_RULE(trace);
FACULA_BATCH_RULE(isin);
FACULA_BATCH_RULE(searchsorted);
FACULA_BATCH_RULE(bucketize);
FACULA_BATCH_RULE(random);
FACULA_BATCH_RULE(convolution);
FACULA_BATCH_RULE(convolution_weight_gradient);
FACULA_BATCH_RULE(layer_norm);
FACULA_BATCH_RULE(layer_norm_grad);
FACULA_BATCH_RULE(batch_norm);
FACULA_BATCH_RULE(scale_channels);
FACULA_BATCH_RULE(group_norm);
FACULA_BATCH_RULE(group_norm_grad);
FACULA_BATCH_RULE(linear);
FACULA_BATCH_RULE(attention);
FACULA_BATCH_RULE(embedding);
FACULA_BATCH_RULE(embedding_gradient);
FACULA_BATCH_RULE(embedding_renorm);
FACULA_BATCH_RULE(embedding_bag);
FACULA_BATCH_RULE(cross_entropy);
FACULA_BATCH_RULE(cross_entropy_grad);
FACULA_BATCH_RULE(nll_loss);
FACULA_BATCH_RULE(nll_loss_grad);
FACULA_BATCH_RULE(ctc_loss);
FACULA_BATCH_RULE(masked_scatter);
FACULA_BATCH_RULE(fill_diagonal);
FACULA_BATCH_RULE(nonzero_static);

#undef FACULA_BATCH_RULE

}  // namespace facula::batch
