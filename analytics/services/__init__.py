"""From the facts to numbers: `recomputation` says when and stores, `estimates` computes one measure."""
