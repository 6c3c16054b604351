; Is the word on the tape a palindrome? Compares its ends and erases them, until nothing or one letter is left.
; Halts in the state yes or no.
tape _[a]bacaba_
first a -> _ R seek_a
first b -> _ R seek_b
first c -> _ R seek_c
first _ -> _ S yes
seek_a a -> a R seek_a
seek_a b -> b R seek_a
seek_a c -> c R seek_a
seek_a _ -> _ L match_a
seek_b a -> a R seek_b
seek_b b -> b R seek_b
seek_b c -> c R seek_b
seek_b _ -> _ L match_b
seek_c a -> a R seek_c
seek_c b -> b R seek_c
seek_c c -> c R seek_c
seek_c _ -> _ L match_c
match_a a -> _ L back
match_a b -> b S no
match_a c -> c S no
match_a _ -> _ S yes
match_b a -> a S no
match_b b -> _ L back
match_b c -> c S no
match_b _ -> _ S yes
match_c a -> a S no
match_c b -> b S no
match_c c -> _ L back
match_c _ -> _ S yes
back a -> a L back
back b -> b L back
back c -> c L back
back _ -> _ R first
