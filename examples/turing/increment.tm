; Adds 1 to a binary number: walk to its last digit, then carry to the left.
tape _[1]011_
right 0 -> 0 R right
right 1 -> 1 R right
right _ -> _ L carry
carry 1 -> 0 L carry
carry 0 -> 1 S done
carry _ -> 1 S done
