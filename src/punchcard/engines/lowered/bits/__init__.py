"""Integer arithmetic found by proof: which nodes of a loop are functions of bits, and the words that hold these bits."""
