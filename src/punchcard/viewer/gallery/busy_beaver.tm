; The busy beaver with four states: 107 steps from an empty tape, and 13 ones when it halts (Brady 1983).
tape ____________[_]___________
A _ -> 1 R B
A 1 -> 1 L B
B _ -> 1 L A
B 1 -> _ L C
C _ -> 1 R H
C 1 -> 1 L D
D _ -> 1 R D
D 1 -> _ R A
